// The snippets of the book's part "Moving from ManagerOpenCL": what a program of the old classes does, by those classes
// and by hipcl.hpp. Each pair computes the same and is compared.
#include <hipcl/manager_opencl.hpp>

#include <cstdio>

using namespace ManagerOpenCL;

constexpr std::size_t COUNT = 1 << 18;

const char *const SOURCE = R"(
kernel void twice(global float2 *x) { x[get_global_id(0)] *= 2.0f; }
kernel void add(global float2 *x, float by) { x[get_global_id(0)].x += by; }
)";

static void require(bool is_true, const char *what) {
    if (!is_true) throw std::runtime_error(std::string("not true: ") + what);
}

static void buffers() {
    const ComplexVector samples(COUNT, ComplexFloat(1.0f, 2.0f));

    // ANCHOR: buffers_old
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto buffer = engine.CreateHybridBuffer(samples.size());
    buffer->Write(samples);
    ComplexVector first = buffer->ReadPartial(16);
    // ANCHOR_END: buffers_old

    const hipcl::Bridge &bridge = engine.GetBridge();
    // ANCHOR: buffers_new
    hipcl::Buffer shared = bridge.alloc<ComplexFloat>(samples.size());
    shared.upload(samples.data(), samples.size());
    ComplexVector begin(16);
    shared.download_at(0, begin.data(), begin.size());
    // ANCHOR_END: buffers_new
    require(first == begin && first[15] == samples[15], "both read the same");
}

static void kernels() {
    const ComplexVector samples(COUNT, ComplexFloat(1.0f, 2.0f));
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto x = engine.CreateHybridBuffer(COUNT);
    x->Write(samples);
    // ANCHOR: kernels_old
    auto program = engine.LoadProgram(SOURCE);
    cl_kernel add = engine.GetKernel(program, "add");
    engine.SetKernelArg(add, 1, 0.5f); // clSetKernelArg() does as well
    engine.ExecuteKernel(add, {x->GetCLMem()}, {COUNT, 1, 1}, {64, 1, 1});
    // ANCHOR_END: kernels_old

    const hipcl::Bridge &bridge = engine.GetBridge();
    hipcl::Buffer y = bridge.alloc<ComplexFloat>(COUNT);
    y.upload(samples.data(), COUNT);
    // ANCHOR: kernels_new
    hipcl::Queue queue = bridge.queue();
    hipcl::Kernel kernel = bridge.build(SOURCE).kernel("add");
    kernel.launch(queue, hipcl::Range(COUNT).in_groups_of(64), hipcl::Write{y}, 0.5f);
    // ANCHOR_END: kernels_new
    ComplexVector found(COUNT);
    y.download(found.data(), COUNT);
    require(x->Read() == found && found[7] == ComplexFloat(1.5f, 2.0f), "both kernels did the same");
}

static void transfers() {
    const ComplexVector samples(COUNT, ComplexFloat(3.0f, 4.0f));
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto buffer = engine.CreateHybridBuffer(COUNT);
    // ANCHOR: transfers_old
    cl_event written = buffer->WriteAsync(samples); // not of a temporary: that does not compile
    ComplexVector back;
    cl_event read = buffer->ReadAsync(back); // after the write, also if a kernel is between them
    engine.WaitForEvents({written, read});
    engine.ReleaseEvent(written);
    engine.ReleaseEvent(read);
    // ANCHOR_END: transfers_old

    const hipcl::Bridge &bridge = engine.GetBridge();
    hipcl::Buffer shared = bridge.alloc<ComplexFloat>(COUNT);
    hipcl::Queue queue = bridge.queue();
    // ANCHOR: transfers_new
    hipcl::Event up = shared.upload_async(queue, 0, samples.data(), COUNT);
    ComplexVector again(COUNT);
    hipcl::Event down = shared.download_async(queue, 0, again.data(), COUNT);
    down.wait();
    // ANCHOR_END: transfers_new
    up.wait();
    require(back == again && again == samples, "both transfers are right");
}

static void products() {
    constexpr std::size_t N = 16, LD = 64;
    ComplexVector data(N * LD);
    for (std::size_t i = 0; i < data.size(); i++) data[i] = ComplexFloat(i % (LD + 1) == 0 ? 2.0f : 0.0f, 0.0f);
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto x = engine.CreateBufferWithData(data, MemoryType::GPU_READ_WRITE), r = engine.CreateBuffer(N * N);
    // ANCHOR: products
    hipcl::Stream stream = engine.GetBridge().stream();
    hipcl::Blas blas = engine.GetBridge().blas(stream);
    hipcl::Buffer &X = x->GetSharedBuffer(), &R = r->GetSharedBuffer(); // after OpenCL's work on them
    blas.cgemm(HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, N, N, LD, 1.0f, {X, LD}, {X, LD}, 0.0f, {R, N});
    blas.cinverse_hermitian(HIPCL_FILL_LOWER, N, {R, N});
    ComplexVector inverse = r->ReadFromGPU(); // OpenCL's again, after HIP's work
    // ANCHOR_END: products
    for (std::size_t i = 0; i < N * N; i++) {
        require(std::abs(inverse[i] - (i % (N + 1) == 0 ? 0.25f : 0.0f)) < 1e-6f, "the inverse of 4 I");
    }
}

// Stands for a library that owns a buffer in the program's context. It finds OpenCL's functions in the table of
// cl_khr_icd, so that this program links no OpenCL library.
struct Theirs {
    cl_mem buffer = nullptr;

    Theirs() {
        cl_mem (*create)(cl_context, cl_mem_flags, std::size_t, void *, cl_int *) = nullptr;
        detail::OpenCL::load(OpenCLCore::GetInstance().GetPlatform(), 14, create); // clCreateBuffer
        cl_int error = -1;
        buffer = create(OpenCLCore::GetInstance().GetContext(), CL_MEM_READ_WRITE, COUNT * sizeof(ComplexFloat), nullptr, &error);
        require(error == CL_SUCCESS, "a cl_mem of another library");
    }
    Theirs(const Theirs &) = delete;
    Theirs &operator=(const Theirs &) = delete;
    ~Theirs() {
        cl_int (*release)(cl_mem) = nullptr;
        detail::OpenCL::load(OpenCLCore::GetInstance().GetPlatform(), 18, release); // clReleaseMemObject
        (void)release(buffer);
    }
};

static void external(cl_mem their_buffer, cl_command_queue their_queue) {
    auto &engine = OpenCLComputeEngine::GetInstance();
    // ANCHOR: external_old
    ExternalBufferInfo info = OpenCLManager::GetBufferInfo(their_buffer);
    auto wrapped = engine.WrapExternalMemoryBuffer(their_buffer, info.num_elements);
    ExternalQueueWrapper theirs(their_queue); // hand-offs to HIP wait for it
    hipcl::Buffer &for_hip = wrapped->GetSharedBuffer();
    // ANCHOR_END: external_old
    require(for_hip.info().bytes == info.size_bytes && for_hip.info().is_copy == 0, "the memory is the owner's");
    ComplexVector before = wrapped->Read();
    wrapped.reset();

    const hipcl::Bridge &bridge = engine.GetBridge();
    // ANCHOR: external_new
    hipcl::Buffer adopted = bridge.adopt(their_buffer);
    hipcl::Queue queue = bridge.adopt(their_queue);
    {
        hipcl::Access access = adopted.begin(queue, HIPCL_ACCESS_WRITE);
        // ... the owner's commands on its queue ...
    }
    // ANCHOR_END: external_new
    ComplexVector after(before.size());
    adopted.download(after.data(), after.size());
    require(before == after, "nothing has changed");
}

static void copies() {
    auto &engine = OpenCLComputeEngine::GetInstance();
    auto source = engine.CreateBufferWithData(ComplexVector(COUNT, 5.0f));
    auto target = engine.CreateBuffer(COUNT);
    const cl_context context = OpenCLCore::GetInstance().GetContext();
    const cl_command_queue queue = CommandQueuePool::GetNextQueue();
    const std::size_t bytes = source->GetSizeBytes();
    const std::uint64_t before = engine.GetCounters().data_set;
    // ANCHOR: copies_old
    BufferBridge::CopyBetweenContexts(source->Get(), context, queue, target->Get(), context, queue, bytes);
    std::uint64_t copied = engine.GetCounters().data_set - before;
    // ANCHOR_END: copies_old
    require(copied == bytes, "a copy is counted");

    const hipcl::Bridge &bridge = engine.GetBridge();
    hipcl::Buffer from = bridge.alloc<ComplexFloat>(COUNT), to = bridge.alloc<ComplexFloat>(COUNT);
    const ComplexVector fives(COUNT, 5.0f);
    from.upload(fives.data(), COUNT);
    hipcl::Queue own = bridge.queue();
    // ANCHOR: copies_new
    to.copy_from(own, 0, from, 0, bytes).wait();
    // ANCHOR_END: copies_new
    ComplexVector found(COUNT);
    to.download(found.data(), COUNT);
    require(found == target->ReadFromGPU() && found == fives, "both copies are right");
}

int main() {
    try {
        // ANCHOR: start_old
        OpenCLComputeEngine::Initialize(DeviceType::GPU);
        auto &engine = OpenCLComputeEngine::GetInstance();
        // ANCHOR_END: start_old
        buffers();
        kernels();
        transfers();
        products();
        copies();
        require(engine.TakeDeferredErrors().empty(), "nothing failed in a destructor");
        {
            // ANCHOR: start_new
            hipcl::Bridge bridge = hipcl::Bridge::open();
            // ANCHOR_END: start_new
            // A buffer of the first bridge's context would be refused: that is another context.
            const Theirs theirs;
            CLBufferBridge::CopyToExternal(theirs.buffer, nullptr, nullptr, COUNT * sizeof(ComplexFloat),
                                           ComplexVector(COUNT, 7.0f).data());
            external(theirs.buffer, CommandQueuePool::GetNextQueue());
        }
        // ANCHOR: end_old
        OpenCLComputeEngine::Cleanup();
        // ANCHOR_END: end_old
        std::puts("all snippets are right");
        return EXIT_SUCCESS;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
}
