// The snippets of the book's chapter "The zero-copy note": each claim of the note that can be tried without a GPU is
// tried, with what to do instead.
#include <hipcl.hpp>

#include <unistd.h>

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

using Complex = std::complex<float>;

constexpr std::size_t COUNT = 1 << 16, BYTES = COUNT * sizeof(Complex);

const char *const SOURCE = "kernel void twice(global float2 *x) { x[get_global_id(0)] *= 2.0f; }";

static void require(bool is_true, const char *what) {
    if (!is_true) throw std::runtime_error(std::string("not true: ") + what);
}

// OpenCL's functions, from the table that every object of OpenCL begins with (cl_khr_icd): this file needs neither a header
// of OpenCL nor its library.
static struct _cl_mem *(*clCreateBuffer)(struct _cl_context *, std::uint64_t, std::size_t, void *, std::int32_t *);
static std::int32_t (*clReleaseMemObject)(struct _cl_mem *);
static std::int32_t (*clGetMemObjectInfo)(struct _cl_mem *, std::uint32_t, std::size_t, void *, std::size_t *);

template <class F> static void load(struct _cl_platform_id *platform, std::size_t place, F *&function) {
    function = reinterpret_cast<F *>((*reinterpret_cast<void *const *const *>(platform))[place]);
    require(function != nullptr, "a function of OpenCL");
}

static void load(struct _cl_platform_id *platform) {
    load(platform, 14, clCreateBuffer);
    load(platform, 18, clReleaseMemObject);
    load(platform, 20, clGetMemObjectInfo);
}

// A buffer of another library.
struct Theirs {
    struct _cl_mem *buffer = nullptr;

    explicit Theirs(const hipcl::Bridge &bridge) {
        std::int32_t code = -1;
        buffer = clCreateBuffer(bridge.native().context, 1, BYTES, nullptr, &code);
        require(code == 0, "a cl_mem");
    }
    Theirs(const Theirs &) = delete;
    Theirs &operator=(const Theirs &) = delete;
    ~Theirs() { (void)clReleaseMemObject(buffer); }
};

static void the_constants_do_not_exist(const hipcl::Bridge &bridge) {
    const Theirs theirs(bridge);
    // ANCHOR: constants
    std::uint64_t answer = 0;
    std::int32_t address = clGetMemObjectInfo(theirs.buffer, 0x4100, sizeof answer, &answer, nullptr);
    std::int32_t descriptor = clGetMemObjectInfo(theirs.buffer, 0x4101, sizeof answer, &answer, nullptr);
    // Both are CL_INVALID_VALUE (-30), and `answer` is what it was.
    // ANCHOR_END: constants
    require(address == -30 && descriptor == -30 && answer == 0, "OpenCL does not know the queries");
}

static void the_address_is_found_and_confirmed(const hipcl::Bridge &bridge) {
    const Theirs theirs(bridge);
    // ANCHOR: address
    hipcl::Buffer buffer = bridge.adopt(theirs.buffer);
    hipcl_buffer_info info = buffer.info();
    // info.hip_address is the address for HIP, info.residency says where the bytes lie, info.is_copy is 0
    // ANCHOR_END: address
    require(info.bytes == BYTES && info.is_copy == 0, "the memory is used in place");
}

static void memory_is_exported_and_imported(const hipcl::Bridge &bridge) {
    const std::vector<Complex> samples(COUNT, Complex(1.0f, -1.0f));
    // ANCHOR: descriptor
    hipcl::Buffer buffer = bridge.alloc_exportable(BYTES);
    buffer.upload(samples.data(), COUNT);
    hipcl::ExportedFd exported = buffer.export_fd(); // with the offset in the descriptor's memory
    // ANCHOR_END: descriptor

    const hipcl::Bridge other = hipcl::Bridge::open();
    // ANCHOR: import
    hipcl::Buffer imported = other.adopt_fd(exported.fd, exported.offset, exported.bytes);
    close(exported.fd); // the library has duplicated it
    // ANCHOR_END: import
    std::vector<Complex> found(COUNT);
    imported.download(found.data(), COUNT);
    require(found == samples, "both are one memory");
}

static void the_grain_decides_where_the_bytes_lie(const hipcl::Bridge &bridge) {
    // ANCHOR: grain
    hipcl::Buffer coarse = bridge.alloc<Complex>(COUNT, HIPCL_ROUTE_SVM_COARSE);
    hipcl::Buffer fine = bridge.alloc<Complex>(COUNT, HIPCL_ROUTE_SVM_FINE);
    // coarse.info().residency is HIPCL_RESIDENCY_VRAM, fine.info().residency is HIPCL_RESIDENCY_HOST_PINNED
    // ANCHOR_END: grain
    require(coarse.info().residency == HIPCL_RESIDENCY_VRAM, "coarse-grain memory is the device's");
    require(fine.info().residency == HIPCL_RESIDENCY_HOST_PINNED, "fine-grain memory is the host's");
    require(coarse.info().opencl_address == coarse.info().hip_address, "one address");
}

static void hip_memory_is_an_argument(const hipcl::Bridge &bridge) {
    hipcl::Queue queue = bridge.queue();
    hipcl::Kernel twice = bridge.build(SOURCE).kernel("twice");
    const std::vector<Complex> samples(COUNT, Complex(1.0f, 2.0f));
    // ANCHOR: hip_memory
    hipcl::Buffer buffer = bridge.alloc<Complex>(COUNT, HIPCL_ROUTE_HIP_POINTER);
    buffer.upload(samples.data(), COUNT);
    twice.launch(queue, hipcl::Range(COUNT), hipcl::Write{buffer}); // a pointer argument, no cl_mem
    // ANCHOR_END: hip_memory
    std::vector<Complex> found(COUNT);
    buffer.download(found.data(), COUNT);
    require(found.back() == Complex(2.0f, 4.0f), "OpenCL has worked on HIP's memory");
}

static void work_is_ordered_without_a_semaphore() {
    // ANCHOR: order
    hipcl::Options options;
    options.grade = HIPCL_GRADE_CALLBACK; // the calling thread does not wait; without this line it does
    const hipcl::Bridge bridge = hipcl::Bridge::open(options);
    hipcl::Queue queue = bridge.queue();
    hipcl::Stream stream = bridge.stream();
    hipcl::Kernel twice = bridge.build(SOURCE).kernel("twice");

    hipcl::Buffer x = bridge.alloc<Complex>(COUNT);
    // ANCHOR_END: order
    const std::vector<Complex> samples(COUNT, Complex(1.0f, 2.0f));
    x.upload(samples.data(), COUNT);
    // ANCHOR: order_use
    twice.launch(queue, hipcl::Range(COUNT), hipcl::Write{x});  // in OpenCL
    twice.launch(stream, hipcl::Range(COUNT), hipcl::Write{x}); // in HIP, after it
    twice.launch(queue, hipcl::Range(COUNT), hipcl::Write{x});  // in OpenCL, after that
    // ANCHOR_END: order_use
    std::vector<Complex> found(COUNT);
    x.download(found.data(), COUNT);
    require(found.front() == Complex(8.0f, 16.0f), "all three in order");
}

static void two_buffers_overlap(const hipcl::Bridge &bridge) {
    constexpr int BLOCKS = 6;
    hipcl::Queue queue = bridge.queue();
    hipcl::Stream stream = bridge.stream();
    hipcl::Program program = bridge.build(SOURCE);
    hipcl::Kernel filter = program.kernel("twice"), solve = program.kernel("twice");
    std::vector<Complex> result(COUNT);
    std::vector<std::vector<Complex>> samples;
    for (int block = 0; block < BLOCKS; block++) samples.emplace_back(COUNT, Complex(static_cast<float>(block), 0.0f));
    // ANCHOR: double_buffer
    hipcl::Buffer slots[2] = {bridge.alloc<Complex>(COUNT), bridge.alloc<Complex>(COUNT)};
    for (std::size_t block = 0; block < samples.size(); block++) {
        hipcl::Buffer &slot = slots[block % 2];
        if (block >= 2) slot.download(result.data(), COUNT); // waits for this slot's work, not for the other's
        if (block >= 2) require(result[0] == 4.0f * samples[block - 2][0], "the block before last");
        slot.upload(samples[block].data(), COUNT);
        filter.launch(queue, hipcl::Range(COUNT), hipcl::Write{slot}); // OpenCL
        solve.launch(stream, hipcl::Range(COUNT), hipcl::Write{slot}); // HIP, while the next block arrives
    }
    // ANCHOR_END: double_buffer
    slots[1].download(result.data(), COUNT);
    require(result[0] == 4.0f * samples.back()[0], "the last block");
    // ANCHOR: proof
    hipcl_counters copied = bridge.counters();
    // copied.data_set is 0: input and results were moved, and nothing between the two APIs
    // ANCHOR_END: proof
    require(copied.data_set == 0 && copied.input != 0 && copied.result != 0, "no copy of the data set");
}

int main() {
    try {
        {
            const hipcl::Bridge bridge = hipcl::Bridge::open();
            load(bridge.native().platform);
            the_constants_do_not_exist(bridge);
            the_address_is_found_and_confirmed(bridge);
            memory_is_exported_and_imported(bridge);
            the_grain_decides_where_the_bytes_lie(bridge);
            hip_memory_is_an_argument(bridge);
            two_buffers_overlap(bridge);
        }
        work_is_ordered_without_a_semaphore();
        std::puts("all snippets are right");
        return EXIT_SUCCESS;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
}
