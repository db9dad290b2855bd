// hipcl.hpp, with exceptions and with std::expected: who owns what, in which order it may go, and how errors arrive.
#include <hipcl.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef HIPCL_EXPECTED
template <class T> T unwrapped(hipcl::Result<T> result, const char *call) {
    if (!result) {
        std::fprintf(stderr, "%s: %s\n", call, result.error().what());
        std::exit(1);
    }
    if constexpr (!std::is_void<T>::value) return std::move(*result);
}
#define OK(call) unwrapped((call), #call)
template <class F> hipcl::Error error_of(F call) {
    auto result = call();
    if (!result) return result.error();
    std::fprintf(stderr, "a call that must fail has not\n");
    std::exit(1);
}
#else
#define OK(call) (call)
template <class F> hipcl::Error error_of(F call) {
    try {
        call();
    } catch (const hipcl::Error &error) {
        return error;
    }
    std::fprintf(stderr, "a call that must fail has not\n");
    std::exit(1);
}
#endif

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);            \
            std::exit(1);                                                                             \
        }                                                                                             \
    } while (0)

template <class T> constexpr bool is_move_only() {
    return std::is_nothrow_move_constructible<T>::value && std::is_nothrow_move_assignable<T>::value &&
           !std::is_copy_constructible<T>::value && !std::is_copy_assignable<T>::value;
}
static_assert(is_move_only<hipcl::Bridge>() && is_move_only<hipcl::Buffer>() && is_move_only<hipcl::Access>(), "");
static_assert(is_move_only<hipcl::Queue>() && is_move_only<hipcl::Stream>() && is_move_only<hipcl::Kernel>(), "");
static_assert(is_move_only<hipcl::Program>() && is_move_only<hipcl::Blas>() && is_move_only<hipcl::Fft>(), "");

static constexpr std::size_t LEN = 1024;

static void errors_have_status_code_and_text(const hipcl::Bridge &bridge) {
    const hipcl::Error error = error_of([&] { return bridge.build("kernel void f("); });
    CHECK(error.status() == HIPCL_ERROR_BUILD && error.code() < 0);
    CHECK(std::strstr(error.what(), "hipcl_program_build: ") == error.what());
    CHECK(error_of([&] { return bridge.alloc<double>(SIZE_MAX / 2); }).status() == HIPCL_ERROR_ARGUMENT);
    CHECK(error_of([] { return hipcl::Bridge().queue(); }).status() == HIPCL_ERROR_HANDLE);
    hipcl::Options options;
    options.platform = "vapour";
    CHECK(error_of([&] { return hipcl::Bridge::open(options); }).status() == HIPCL_ERROR_ARGUMENT);
}

static void objects_move_and_end_in_any_order(const hipcl::Bridge &bridge) {
    hipcl::Stream stream = OK(bridge.stream());
    hipcl::Buffer first = OK(bridge.alloc<float>(LEN));
    const hipcl_buffer raw = first.get();
    hipcl::Buffer buffer = std::move(first);
    CHECK(!first && buffer.get() == raw);
    hipcl_buffer_info info = {};
    info.struct_size = sizeof info;
    {
        hipcl::Access access = OK(buffer.begin(stream, HIPCL_ACCESS_WRITE));
        CHECK(OK(access.pointer<float>()) != nullptr);
        const auto upload = [&] { return buffer.upload(std::vector<float>(LEN).data(), LEN); };
        CHECK(error_of(upload).status() == HIPCL_ERROR_BUSY);
        // The buffer goes first: it lives until its access has ended.
        { hipcl::Buffer gone = std::move(buffer); }
        CHECK(hipcl_buffer_get_info(raw, &info) == HIPCL_SUCCESS && info.bytes == LEN * sizeof(float));
        hipcl::Access moved = std::move(access);
        CHECK(!access && OK(moved.pointer()) != nullptr);
    }
    CHECK(hipcl_buffer_get_info(raw, &info) == HIPCL_ERROR_STALE_HANDLE);
    // Assigned to itself, an object stays; closed, it is gone, and a second time is an error.
    hipcl::Buffer own = OK(bridge.alloc<float>(LEN));
    hipcl::Buffer &same = own;
    own = std::move(same);
    CHECK(own && OK(own.info()).bytes == LEN * sizeof(float));
    {
        hipcl::Access access = OK(own.begin(stream, HIPCL_ACCESS_READ));
        hipcl::Access &again = access;
        access = std::move(again);
        CHECK(OK(access.pointer()) != nullptr);
        CHECK(error_of([&] { return own.close(); }).status() == HIPCL_ERROR_BUSY && own);
    }
    OK(own.close());
    CHECK(!own && error_of([&] { return own.close(); }).status() == HIPCL_ERROR_HANDLE);
    CHECK(error_of([&] { return first.info(); }).status() == HIPCL_ERROR_HANDLE);
    // What is assigned to is destroyed, and what was released is not.
    hipcl::Queue queue = OK(bridge.queue());
    const hipcl_queue old = queue.get();
    queue = OK(bridge.queue());
    CHECK(hipcl_queue_finish(old) == HIPCL_ERROR_STALE_HANDLE);
    const hipcl_queue kept = queue.release();
    queue.reset();
    CHECK(hipcl_queue_destroy(kept) == HIPCL_SUCCESS);
}

static void kernels_take_buffers_values_and_accesses(const hipcl::Bridge &bridge) {
    hipcl::Program program = OK(bridge.build("kernel void add(global const float *x, global float *y, float by) {\n"
                                             "    size_t i = get_global_id(0);\n"
                                             "    y[i] = x[i] + by;\n"
                                             "}\n"));
    hipcl::Kernel add = OK(program.kernel("add"));
    hipcl::Queue queue = OK(bridge.queue());
    hipcl::Stream stream = OK(bridge.stream());
    hipcl::Buffer x = OK(bridge.alloc<float>(LEN)), y = OK(bridge.alloc<float>(LEN));
    std::vector<float> numbers(LEN, 1.0f);
    OK(x.upload(numbers));
    OK(add.launch(queue, hipcl::Range(LEN), hipcl::Read{x}, hipcl::Write{y}, 2.0f));
    {
        hipcl::Access from = OK(y.begin(stream, HIPCL_ACCESS_READ)), to = OK(x.begin(stream, HIPCL_ACCESS_WRITE));
        OK(add.launch(stream, hipcl::Range(LEN).in_groups_of(64), from, to, 4.0f));
    }
    OK(x.download(numbers));
    CHECK(numbers.front() == 7.0f && numbers.back() == 7.0f);
    CHECK(OK(bridge.counters()).data_set == 0);

    // Parts, in elements: from the host, filled, from the other buffer, and back.
    std::vector<float> part(16, 5.0f);
    const hipcl::Event written = OK(x.upload_async(queue, 8, part.data(), part.size()));
    OK(x.upload_at(100, part.data(), 4));
    OK(x.fill(queue, 200, 8, 9.0f));
    OK(y.copy_from(queue, 0, x, 8 * sizeof(float), 64 * sizeof(float)));
    const hipcl::Event read = OK(y.download_async(queue, 8, part.data(), part.size()));
    OK(written.wait());
    OK(read.wait());
    CHECK(OK(read.is_complete()) && OK(read.native()) != nullptr);
    CHECK(part[7] == 5.0f && part[8] == 7.0f);
    OK(OK(queue.record()).wait());
    OK(x.download_at(96, part.data(), part.size()));
    CHECK(part[3] == 7.0f && part[4] == 5.0f && part[7] == 5.0f && part[8] == 7.0f);
    OK(x.download_at(199, part.data(), 10));
    CHECK(part[0] == 7.0f && part[1] == 9.0f && part[8] == 9.0f && part[9] == 7.0f);

    // Over a descriptor to another buffer, on a bridge of the first one's own objects.
    hipcl::Buffer exported = OK(bridge.alloc_exportable(LEN * sizeof(float)));
    OK(exported.upload(numbers.data(), LEN));
    const hipcl::ExportedFd fd = OK(exported.export_fd());
    exported = hipcl::Buffer();
    const hipcl_native_handles native = OK(bridge.native());
    const hipcl::Bridge other =
        OK(hipcl::Bridge::adopt(native.context, native.device, native.queue, native.stream));
    hipcl::Buffer imported = OK(other.adopt_fd(fd.fd, fd.offset, fd.bytes));
    CHECK(close(fd.fd) == 0);
    std::vector<float> again(LEN);
    OK(imported.download(again.data(), LEN));
    CHECK(again == numbers);
}

static void products_and_transforms(const hipcl::Bridge &bridge) {
    using Complex = std::complex<float>;
    hipcl::Stream stream = OK(bridge.stream());
    hipcl::Blas blas = OK(bridge.blas(stream));
    hipcl::Fft fft = OK(bridge.fft(8, 2));
    hipcl::Buffer x = OK(bridge.alloc<Complex>(16)), r = OK(bridge.alloc<Complex>(4));
    std::vector<Complex> numbers(16, Complex(0.0f, 1.0f)), product(4);
    OK(x.upload(numbers.data(), 16));
    // The columns of x, 8 x 2, by each other: 8 everywhere.
    OK(blas.cgemm(HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, 2, 2, 8, 1.0f, {x, 8}, {x, 8}, 0.0f, {r, 2}));
    OK(r.download(product.data(), 4));
    for (const Complex &one : product) CHECK(one == Complex(8.0f, 0.0f));
    OK(fft.enqueue(stream, HIPCL_FFT_FORWARD, x, x));
    OK(x.download(numbers.data(), 16));
    CHECK(std::abs(numbers[0] - Complex(0.0f, 8.0f)) < 1e-5f && std::abs(numbers[9]) < 1e-5f);
    // Indefinite: it has no Cholesky factor.
    const Complex indefinite[] = {1.0f, 2.0f, 2.0f, 1.0f};
    OK(r.upload(indefinite));
    std::size_t failed = 0;
    const auto invert = [&] { return blas.cinverse_hermitian(HIPCL_FILL_UPPER, 2, {r, 2}, 1, &failed); };
    CHECK(error_of(invert).status() == HIPCL_ERROR_NUMERIC && failed == 1);
}

int main() {
    hipcl::Bridge bridge = OK(hipcl::Bridge::open());
    errors_have_status_code_and_text(bridge);
    objects_move_and_end_in_any_order(bridge);
    kernels_take_buffers_values_and_accesses(bridge);
    products_and_transforms(bridge);
    CHECK(OK(bridge.report(HIPCL_FORMAT_JSON)).front() == '{');
    CHECK(OK(bridge.take_deferred_errors()).empty());
    return 0;
}
