// examples/c/covariance.c in C++: an OpenCL kernel weights a block of samples, and rocBLAS computes the covariance of
// its channels on the same memory, R = X^H X.
//
//   g++ -std=c++17 covariance.cpp -I PREFIX/include -L PREFIX/lib -lhipcl -Wl,-rpath,PREFIX/lib -o covariance
//
// `cargo xtask capi PREFIX` makes PREFIX. Without a GPU the program runs on the software device.
#include <hipcl.hpp>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Complex = std::complex<float>;

constexpr std::size_t SAMPLES = 256, CHANNELS = 8;

const char *const SOURCE = R"(
kernel void weight(global float2 *x, uint samples) {
    size_t i = get_global_id(0);
    x[i] *= (i % samples) % 2 ? -0.5f : 0.5f;
}
)";

static int run() {
    std::vector<Complex> samples(SAMPLES * CHANNELS);
    for (std::size_t i = 0; i < samples.size(); i++) {
        samples[i] = Complex(static_cast<float>(i / SAMPLES + 1), static_cast<float>(i % SAMPLES % 3));
    }

    /* ANCHOR: both */
    const hipcl::Bridge bridge = hipcl::Bridge::open();
    hipcl::Buffer x = bridge.alloc<Complex>(samples.size());
    hipcl::Buffer r = bridge.alloc<Complex>(CHANNELS * CHANNELS);
    x.upload(samples.data(), samples.size());

    hipcl::Queue queue = bridge.queue();
    hipcl::Kernel weight = bridge.build(SOURCE).kernel("weight");
    weight.launch(queue, hipcl::Range(samples.size()), hipcl::Write{x}, std::uint32_t{SAMPLES});

    hipcl::Stream stream = bridge.stream();
    hipcl::Blas blas = bridge.blas(stream);
    blas.cgemm(HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, CHANNELS, CHANNELS, SAMPLES, /* m, n, k */
               1.0f, {x, SAMPLES}, {x, SAMPLES}, 0.0f, {r, CHANNELS});

    std::vector<Complex> covariance(CHANNELS * CHANNELS);
    r.download(covariance.data(), covariance.size());
    /* ANCHOR_END: both */

    // The same sum on the host: the weights are +-1/2, so each product is a quarter of that of the samples.
    double worst = 0.0;
    for (std::size_t j = 0; j < CHANNELS; j++) {
        for (std::size_t i = 0; i < CHANNELS; i++) {
            std::complex<double> sum;
            for (std::size_t s = 0; s < SAMPLES; s++) {
                const std::complex<double> a = samples[i * SAMPLES + s], b = samples[j * SAMPLES + s];
                sum += 0.25 * std::conj(a) * b;
            }
            const std::complex<double> found = covariance[j * CHANNELS + i];
            worst = std::fmax(worst, std::abs(found - sum) / std::abs(sum));
        }
    }
    const hipcl_counters counters = bridge.counters();
    std::printf("largest relative error %.1e, copies of the data set %llu bytes\n", worst,
                static_cast<unsigned long long>(counters.data_set));
    return worst < 1e-5 && counters.data_set == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main() {
    try {
        return run();
    } catch (const hipcl::Error &error) {
        std::fprintf(stderr, "%s: %s\n", hipcl_status_name(error.status()), error.what());
        return EXIT_FAILURE;
    }
}
