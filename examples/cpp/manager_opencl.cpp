// A receiver chain that was written for ManagerOpenCL: 16-bit or complex samples of an antenna array, fractional delays,
// matched filter, covariance, and the directions of the targets by Capon's method. Of the old program only the includes
// have changed. What it computes is compared with the processor's result in double precision.
//
// With -DWITH_HIP the covariance and its inverse are rocBLAS's and rocSOLVER's work, on the same buffers: the lines of
// the blocks #ifdef WITH_HIP are all that changes.
//
//   g++ -std=c++17 manager_opencl.cpp -I PREFIX/include -L PREFIX/lib -lhipcl -Wl,-rpath,PREFIX/lib -pthread
//
// `cargo xtask capi PREFIX` makes PREFIX. Without a GPU, set HIPCL_PLATFORM=host.
#include <hipcl/manager_opencl.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <thread>

using namespace ManagerOpenCL;
using Double = std::complex<double>;

constexpr std::size_t CHANNELS = 8, SAMPLES = 512, CHIRP = 64, LAGS = SAMPLES - CHIRP, BEAMS = 32, FRAMES = 4;
constexpr std::size_t THREADS = 2;
constexpr double PI = 3.14159265358979323846, LOADING = 8.0, SCALE = 1.0 / 4096.0;

// A matrix has its columns one behind the other: sample i of channel c is at c * SAMPLES + i.
const char *const SOURCE = R"(
float2 mul(float2 a, float2 b) { return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
float2 mul_conj(float2 a, float2 b) { return (float2)(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x); }

typedef struct { uint channels, samples, chirp, beams; float scale; } sizes;

// 16-bit samples as the converter delivers them.
kernel void unpack(global const short2 *raw, global float2 *x, global const sizes *s) {
    size_t at = get_global_id(0);
    x[at] = (float2)((float)raw[at].x, (float)raw[at].y) * s->scale;
}

// A delay by whole samples and a cubic interpolation between four of them.
kernel void delay(global const float2 *x, global float2 *y, global const float *delays, global const sizes *s) {
    int i = get_global_id(0), c = get_global_id(1), n = s->samples;
    int whole = (int)floor(delays[c]);
    float m = delays[c] - whole;
    float taps[4] = {m * (m + 1.0f) * (m - 1.0f) / 6.0f, -m * (m + 1.0f) * (m - 2.0f) / 2.0f,
                     (m + 1.0f) * (m - 1.0f) * (m - 2.0f) / 2.0f, -m * (m - 1.0f) * (m - 2.0f) / 6.0f};
    float2 sum = (float2)(0.0f, 0.0f);
    for (int k = 0; k < 4; k++) {
        int at = i - whole - 2 + k;
        if (at >= 0 && at < n) sum += x[c * n + at] * taps[k];
    }
    y[c * n + i] = sum;
}

// The correlation with the transmitted chirp.
kernel void compress(global const float2 *y, global float2 *z, global const float2 *chirp, global const sizes *s) {
    size_t lag = get_global_id(0), c = get_global_id(1), lags = s->samples - s->chirp;
    float2 sum = (float2)(0.0f, 0.0f);
    for (uint k = 0; k < s->chirp; k++) sum += mul_conj(chirp[k], y[c * s->samples + lag + k]);
    z[c * lags + lag] = sum / (float)s->chirp;
}

// R += Z^H Z / lags
kernel void covariance(global const float2 *z, global float2 *r, global const sizes *s) {
    size_t i = get_global_id(0), j = get_global_id(1), lags = s->samples - s->chirp;
    float2 sum = (float2)(0.0f, 0.0f);
    for (size_t lag = 0; lag < lags; lag++) sum += mul_conj(z[i * lags + lag], z[j * lags + lag]);
    r[j * s->channels + i] += sum / (float)lags;
}

// The power from each direction: 1 / (a^H R^-1 a)
kernel void capon(global const float2 *inverse, global const float2 *steering, global float2 *power,
                  global const sizes *s) {
    size_t beam = get_global_id(0), n = s->channels;
    float2 sum = (float2)(0.0f, 0.0f);
    for (size_t j = 0; j < n; j++) {
        float2 column = (float2)(0.0f, 0.0f);
        for (size_t i = 0; i < n; i++) column += mul_conj(steering[beam * n + i], inverse[j * n + i]);
        sum += mul(column, steering[beam * n + j]);
    }
    power[beam] = (float2)(1.0f / sum.x, 0.0f);
}
)";

struct Sizes {
    std::uint32_t channels, samples, chirp, beams;
    float scale;
};

static ComplexVector chirp() {
    ComplexVector pulse(CHIRP);
    for (std::size_t k = 0; k < CHIRP; k++) {
        const double t = static_cast<double>(k) - CHIRP / 2.0;
        pulse[k] = ComplexFloat(std::polar(1.0, PI * 0.8 / CHIRP * t * t));
    }
    return pulse;
}

// The phase of a direction on a line of antennas at half a wavelength.
static ComplexVector steering() {
    ComplexVector vectors(BEAMS * CHANNELS);
    for (std::size_t beam = 0; beam < BEAMS; beam++) {
        const double sine = -1.0 + 2.0 * (static_cast<double>(beam) + 0.5) / BEAMS;
        for (std::size_t c = 0; c < CHANNELS; c++) {
            vectors[beam * CHANNELS + c] = ComplexFloat(std::polar(1.0, PI * sine * static_cast<double>(c)));
        }
    }
    return vectors;
}

static std::vector<float> delays() {
    std::vector<float> all(CHANNELS);
    for (std::size_t c = 0; c < CHANNELS; c++) all[c] = 2.0f + 0.25f * static_cast<float>(c % 4);
    return all;
}

// The beam in which the target of a frame is.
static std::size_t target(std::size_t frame) { return 5 + 7 * frame; }

// What the converter delivers: echoes of one target, and noise.
static std::vector<std::int16_t> converted(std::size_t frame) {
    std::mt19937 random(static_cast<unsigned>(frame + 1));
    std::uniform_real_distribution<double> noise(-0.2, 0.2);
    const ComplexVector pulse = chirp(), directions = steering();
    std::vector<std::int16_t> raw(2 * CHANNELS * SAMPLES);
    for (std::size_t c = 0; c < CHANNELS; c++) {
        const Double phase = std::conj(Double(directions[target(frame) * CHANNELS + c]));
        for (std::size_t i = 0; i < SAMPLES; i++) {
            Double value(noise(random), noise(random));
            const std::size_t start = 100 + 40 * frame;
            if (i >= start && i < start + CHIRP) value += 4.0 * phase * Double(pulse[i - start]);
            raw[2 * (c * SAMPLES + i)] = static_cast<std::int16_t>(std::lround(value.real() / SCALE));
            raw[2 * (c * SAMPLES + i) + 1] = static_cast<std::int16_t>(std::lround(value.imag() / SCALE));
        }
    }
    return raw;
}

static ComplexVector unpacked(const std::vector<std::int16_t> &raw) {
    ComplexVector samples(raw.size() / 2);
    for (std::size_t i = 0; i < samples.size(); i++) {
        samples[i] = ComplexFloat(static_cast<float>(raw[2 * i] * SCALE), static_cast<float>(raw[2 * i + 1] * SCALE));
    }
    return samples;
}

// In place, by elimination: the matrix is Hermitian and positive definite, so no row is exchanged.
template <class T> void invert(std::vector<std::complex<T>> &a, std::size_t n) {
    for (std::size_t p = 0; p < n; p++) {
        const std::complex<T> pivot = T(1) / a[p * n + p];
        a[p * n + p] = T(1);
        for (std::size_t j = 0; j < n; j++) a[j * n + p] *= pivot;
        for (std::size_t i = 0; i < n; i++) {
            if (i == p) continue;
            const std::complex<T> factor = a[p * n + i];
            a[p * n + i] = T(0);
            for (std::size_t j = 0; j < n; j++) a[j * n + i] -= factor * a[j * n + p];
        }
    }
}

static ComplexVector loading() {
    ComplexVector r(CHANNELS * CHANNELS);
    for (std::size_t i = 0; i < CHANNELS; i++) r[i * CHANNELS + i] = static_cast<float>(LOADING / CHANNELS);
    return r;
}

// The whole chain on the processor.
static std::vector<double> reference(std::size_t frame) {
    const ComplexVector x = unpacked(converted(frame)), pulse = chirp(), directions = steering(), start = loading();
    const std::vector<float> all_delays = delays();
    std::vector<Double> z(CHANNELS * LAGS), r(start.begin(), start.end());
    for (std::size_t c = 0; c < CHANNELS; c++) {
        const long whole = static_cast<long>(std::floor(all_delays[c]));
        const double m = all_delays[c] - static_cast<double>(whole);
        const double taps[] = {m * (m + 1) * (m - 1) / 6, -m * (m + 1) * (m - 2) / 2, (m + 1) * (m - 1) * (m - 2) / 2,
                               -m * (m - 1) * (m - 2) / 6};
        std::vector<Double> y(SAMPLES);
        for (long i = 0; i < static_cast<long>(SAMPLES); i++) {
            for (long k = 0; k < 4; k++) {
                const long at = i - whole - 2 + k;
                if (at < 0 || at >= static_cast<long>(SAMPLES)) continue;
                y[static_cast<std::size_t>(i)] += taps[k] * Double(x[c * SAMPLES + static_cast<std::size_t>(at)]);
            }
        }
        for (std::size_t lag = 0; lag < LAGS; lag++) {
            for (std::size_t k = 0; k < CHIRP; k++) z[c * LAGS + lag] += std::conj(Double(pulse[k])) * y[lag + k] / double(CHIRP);
        }
    }
    for (std::size_t i = 0; i < CHANNELS; i++) {
        for (std::size_t j = 0; j < CHANNELS; j++) {
            for (std::size_t lag = 0; lag < LAGS; lag++) {
                r[j * CHANNELS + i] += std::conj(z[i * LAGS + lag]) * z[j * LAGS + lag] / double(LAGS);
            }
        }
    }
    invert(r, CHANNELS);
    std::vector<double> power(BEAMS);
    for (std::size_t beam = 0; beam < BEAMS; beam++) {
        Double sum;
        for (std::size_t i = 0; i < CHANNELS; i++) {
            for (std::size_t j = 0; j < CHANNELS; j++) {
                sum += std::conj(Double(directions[beam * CHANNELS + i])) * r[j * CHANNELS + i] *
                       Double(directions[beam * CHANNELS + j]);
            }
        }
        power[beam] = 1.0 / sum.real();
    }
    return power;
}

// Another library of the plant: it owns its buffer and its queue, and hands out the handles.
class Converter {
  public:
    explicit Converter(std::size_t frame)
        : buffer_(OpenCLComputeEngine::GetInstance().CreateTypedBufferWithData(converted(frame))),
          queue_(CommandQueuePool::GetQueue(frame % CommandQueuePool::GetPoolSize())) {}
    cl_mem Buffer() const { return buffer_->Get(); }
    cl_command_queue Queue() const { return queue_; }

  private:
    std::unique_ptr<GPUMemoryBuffer> buffer_;
    cl_command_queue queue_;
};

// What all frames have in common.
struct Constants {
    std::shared_ptr<GPUMemoryBuffer> sizes, delays;
    std::unique_ptr<IMemoryBuffer> chirp, steering;
};

static Constants constants(OpenCLComputeEngine &engine) {
    Constants all;
    const Sizes sizes = {CHANNELS, SAMPLES, CHIRP, BEAMS, static_cast<float>(SCALE)};
    all.sizes = engine.CreateTypedBufferWithData(std::vector<Sizes>{sizes});
    all.delays = engine.CreateTypedBufferWithData(delays());
    OpenCLManager::GetInstance().RegisterBuffer("delays", all.delays);

    // By an asynchronous transfer, and by the host's own hand.
    all.chirp = engine.CreateHybridBuffer(CHIRP, MemoryType::GPU_READ_ONLY);
    const ComplexVector pulse = chirp(), directions = steering();
    const cl_event event = all.chirp->WriteAsync(pulse);
    all.steering = engine.CreateBufferWithStrategy(directions.size(), MemoryStrategy::SVM_COARSE_GRAIN);
    {
        const ScopedMap map(all.steering.get(), true, false);
        std::copy(directions.begin(), directions.end(), static_cast<ComplexFloat *>(all.steering->GetSVMPointer()));
    }
    engine.WaitForEvent(event);
    engine.ReleaseEvent(event);
    return all;
}

// One frame through the chain: the power from each direction.
static ComplexVector processed(std::size_t frame, const Constants &all) {
    OpenCLComputeEngine &engine = OpenCLComputeEngine::GetInstance();
    const auto program = engine.LoadProgram(SOURCE);
    const auto factory = engine.CreateBufferFactory(BufferConfig::SVMOnly());
    const auto x = factory->Create(CHANNELS * SAMPLES);
    const auto y = factory->Create(CHANNELS * SAMPLES);
    const auto z = factory->Create(CHANNELS * LAGS);
    const auto r = engine.CreateBuffer(CHANNELS * CHANNELS);
    const auto power = engine.CreateHybridBuffer(BEAMS, MemoryType::GPU_WRITE_ONLY);
    const std::array<std::size_t, 3> any = {0, 0, 0};
    const cl_mem sizes = all.sizes->Get();

    const ComplexVector start = loading();
    const cl_event loaded = r->WriteToGPUAsync(start);
    engine.WaitForEvent(loaded);
    engine.ReleaseEvent(loaded);

    if (frame % 2 == 0) {
        // From the network.
        const ComplexVector samples = unpacked(converted(frame));
        const cl_event written = x->WriteAsync(samples);
        engine.WaitForEvents({written});
        engine.ReleaseEvent(written);
    } else {
        // From the converter's own buffer, in place.
        const Converter converter(frame);
        const ExternalBufferInfo info = OpenCLManager::GetBufferInfo(converter.Buffer());
        const auto raw = engine.WrapExternalMemoryBuffer(converter.Buffer(), info.num_elements, MemoryType::GPU_READ_ONLY);
        ExternalQueueWrapper queue(converter.Queue());
        queue.Finish();
        const cl_kernel unpack = engine.GetKernel(program, "unpack");
        engine.ExecuteKernel(unpack, {raw->GetCLMem(), x->GetCLMem(), sizes}, {CHANNELS * SAMPLES, 1, 1}, {64, 1, 1});
    }

    const cl_mem delays = OpenCLManager::GetInstance().GetBuffer("delays")->Get();
    const cl_event delayed = engine.ExecuteKernelAsync(engine.GetKernel(program, "delay"),
                                                       {x->GetCLMem(), y->GetCLMem(), delays, sizes},
                                                       {SAMPLES, CHANNELS, 1}, any);
    engine.ReleaseEvent(delayed);
    const cl_event compressed = engine.ExecuteKernelAsync(engine.GetKernel(program, "compress"),
                                                          {y->GetCLMem(), z->GetCLMem(), all.chirp->GetCLMem(), sizes},
                                                          {LAGS, CHANNELS, 1}, any);
    engine.WaitForEvent(compressed);
    engine.ReleaseEvent(compressed);

#ifdef WITH_HIP
    // ANCHOR: with_hip
    const hipcl::Stream stream = engine.GetBridge().stream();
    hipcl::Blas blas = engine.GetBridge().blas(stream);
    hipcl::Buffer &Z = z->GetSharedBuffer(), &R = r->GetSharedBuffer();
    blas.cgemm(HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, CHANNELS, CHANNELS, LAGS, 1.0f / float(LAGS), {Z, LAGS},
               {Z, LAGS}, 1.0f, {R, CHANNELS});
    blas.cinverse_hermitian(HIPCL_FILL_LOWER, CHANNELS, {R, CHANNELS});
    // ANCHOR_END: with_hip
#else
    // ANCHOR: without_hip
    engine.ExecuteKernel(engine.GetKernel(program, "covariance"), {z->GetCLMem(), r->Get(), sizes},
                         {CHANNELS, CHANNELS, 1}, any);
    ComplexVector matrix = r->ReadFromGPU();
    invert(matrix, CHANNELS);
    r->WriteToGPU(matrix);
    // ANCHOR_END: without_hip
#endif

    engine.ExecuteKernel(engine.GetKernel(program, "capon"),
                         {r->Get(), all.steering->GetCLMem(), power->GetCLMem(), sizes}, {BEAMS, 1, 1}, any);
    ComplexVector result;
    const cl_event read = power->ReadAsync(result);
    engine.WaitForEvent(read);
    engine.ReleaseEvent(read);
    return result;
}

// The largest relative error of all frames. Each thread takes every second frame.
static double all_frames(const Constants &all) {
    std::vector<ComplexVector> powers(FRAMES);
    std::vector<std::exception_ptr> failures(THREADS);
    std::vector<std::thread> threads;
    for (std::size_t first = 0; first < THREADS; first++) {
        threads.emplace_back([&, first] {
            try {
                for (std::size_t frame = first; frame < FRAMES; frame += THREADS) powers[frame] = processed(frame, all);
            } catch (...) {
                failures[first] = std::current_exception();
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    for (const std::exception_ptr &failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }

    double worst = 0.0;
    for (std::size_t frame = 0; frame < FRAMES; frame++) {
        const std::vector<double> expected = reference(frame);
        std::size_t strongest = 0;
        for (std::size_t beam = 0; beam < BEAMS; beam++) {
            const double found = powers[frame][beam].real();
            worst = std::fmax(worst, std::fabs(found - expected[beam]) / expected[beam]);
            if (found > powers[frame][strongest].real()) strongest = beam;
        }
        std::printf("frame %zu: a target in beam %zu\n", frame, strongest);
        if (strongest != target(frame)) throw std::runtime_error("the target is not where it was put");
    }
    return worst;
}

// Copies that the program asks for: the results into another library's buffer, and from buffer to buffer.
static void archived() {
    OpenCLManager &manager = OpenCLManager::GetInstance();
    const ComplexVector data = steering();
    const auto archive = manager.CreateBuffer(data.size(), MemoryType::GPU_READ_WRITE);
    const auto copy = manager.CreateBuffer(data.size(), MemoryType::GPU_READ_WRITE);
    const std::size_t bytes = archive->GetSizeBytes();
    const cl_command_queue queue = manager.GetQueueForBuffer(archive->Get());
    CLBufferBridge::CopyToExternal(archive->Get(), manager.GetContext(), queue, bytes, data.data());
    BufferBridge::CopyBetweenContexts(archive->Get(), manager.GetContext(), queue, copy->Get(), manager.GetContext(), queue,
                                      bytes);
    ComplexVector again(data.size());
    if (!CLBufferBridge::TryCopySVM(copy->Get(), manager.GetContext(), queue, bytes, again.data(), true)) {
        CLBufferBridge::CopyFromExternal(copy->Get(), manager.GetContext(), queue, bytes, again.data());
    }
    if (again != data) throw std::runtime_error("the copy differs");
}

int main() {
    try {
        OpenCLCore::Initialize(DeviceType::GPU);
        CommandQueuePool::Initialize(4);
        OpenCLComputeEngine::Initialize(DeviceType::GPU);
        OpenCLComputeEngine &engine = OpenCLComputeEngine::GetInstance();

        double worst = 0.0;
        {
            const Constants all = constants(engine);
            worst = all_frames(all);
        }
        const auto counters = engine.GetCounters();
        archived();
        const auto copied = engine.GetCounters().data_set - counters.data_set;
        const bool is_right = worst < 1e-3 && KernelProgramCache::GetCacheSize() == 1 && counters.data_set == 0 &&
                              copied == BEAMS * CHANNELS * sizeof(ComplexFloat);
        std::printf("%slargest relative error %.1e, copies of the data set %llu bytes, asked for after that %llu bytes\n",
                    engine.GetStatistics().c_str(), worst, static_cast<unsigned long long>(counters.data_set),
                    static_cast<unsigned long long>(copied));
        const std::string errors = engine.TakeDeferredErrors();
        std::fputs(errors.c_str(), stderr);
        OpenCLComputeEngine::Cleanup();
        return is_right && errors.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
}
