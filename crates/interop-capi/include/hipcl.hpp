// hipcl for C++17: hipcl.h with objects that destroy themselves. SPDX-License-Identifier: MIT OR Apache-2.0
//
// Every class owns one handle, can be moved and not copied, and converts to the C handle by get(). An object that was
// moved from, or default-constructed, has none: it can be assigned to and destroyed, and every call with it is
// HIPCL_ERROR_HANDLE. What a function does, its units and its errors are described at the C function of the same name
// in hipcl.h.
//
// Errors are exceptions of type hipcl::Error. With the macro HIPCL_EXPECTED defined, which needs C++23, they are values
// instead: every function then returns std::expected<T, hipcl::Error>, and the header throws nothing but
// std::bad_alloc.
//
// Destructors throw and report nothing: hipcl::Buffer::close() returns what destroying a buffer finds, and
// hipcl::Bridge::take_deferred_errors() what failed in other destructors. An access keeps its buffer, so that the two
// may be destroyed in any order.
#ifndef HIPCL_HPP
#define HIPCL_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "hipcl.h"

#ifdef HIPCL_EXPECTED
#include <expected>
#else
#include <stdexcept>
#endif

namespace hipcl {

// Two ways to fail are two sets of types: files of one program that are compiled with and without HIPCL_EXPECTED do not
// take each other's functions.
#ifdef HIPCL_EXPECTED
inline namespace expected {
#else
inline namespace throwing {
#endif

// What a call failed with.
class Error
#ifndef HIPCL_EXPECTED
    : public std::runtime_error
#endif
{
  public:
    // The calling thread's last error, for a call that has just returned this status.
    static Error last(hipcl_status status) { return Error(status, hipcl_last_error_code(), hipcl_last_error()); }

    // One of HIPCL_ERROR_...
    hipcl_status status() const noexcept { return status_; }
    // The driver's code; 0 if there is none.
    std::int32_t code() const noexcept { return code_; }
#ifdef HIPCL_EXPECTED
    // The cause and the remedy.
    const char *what() const noexcept { return text_.c_str(); }
#endif

  private:
    Error(hipcl_status status, std::int32_t code, const char *text)
#ifdef HIPCL_EXPECTED
        : text_(text), status_(status), code_(code) {
    }
    std::string text_;
#else
        : std::runtime_error(text), status_(status), code_(code) {
    }
#endif
    hipcl_status status_;
    std::int32_t code_;
};

#ifdef HIPCL_EXPECTED
template <class T> using Result = std::expected<T, Error>;
// A result that is thrown away is an error that is not looked at.
#define HIPCL_RESULT [[nodiscard]]
#else
template <class T> using Result = T;
#define HIPCL_RESULT
#endif

namespace detail {

// The result of a call: a value that the call has filled by now, hence by reference.
template <class T, class Raw> HIPCL_RESULT Result<T> made(hipcl_status status, Raw &raw) {
    if (status != HIPCL_SUCCESS) {
#ifdef HIPCL_EXPECTED
        return std::unexpected(Error::last(status));
#else
        throw Error::last(status);
#endif
    }
    return T(std::move(raw));
}

HIPCL_RESULT inline Result<void> done(hipcl_status status) {
    if (status != HIPCL_SUCCESS) {
#ifdef HIPCL_EXPECTED
        return std::unexpected(Error::last(status));
#else
        throw Error::last(status);
#endif
    }
    return Result<void>();
}

// One handle, and the function that destroys it.
template <class Raw, hipcl_status (*Destroy)(Raw)> class Handle {
  public:
    Handle() noexcept = default;
    // Takes the handle over.
    explicit Handle(Raw raw) noexcept : raw_(raw) {}
    Handle(Handle &&other) noexcept : raw_(other.release()) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            reset();
            raw_ = other.release();
        }
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { reset(); }

    // The C handle, which stays this object's.
    Raw get() const noexcept { return raw_; }
    // The C handle, which is the caller's from now on.
    Raw release() noexcept { return std::exchange(raw_, nullptr); }
    // Destroys the object now. What fails then is told by Bridge::take_deferred_errors().
    void reset() noexcept {
        if (raw_ != nullptr) (void)Destroy(release());
    }
    explicit operator bool() const noexcept { return raw_ != nullptr; }

  private:
    Raw raw_ = nullptr;
};

using Text = Handle<hipcl_text, hipcl_text_destroy>;

HIPCL_RESULT inline Result<std::string> string(hipcl_status status, hipcl_text &raw) {
    Text text(raw);
    const char *chars = "";
    std::size_t bytes = 0;
    if (status == HIPCL_SUCCESS) status = hipcl_text_get(text.get(), &chars, &bytes);
    std::string copy(chars, bytes);
    return made<std::string>(status, copy);
}

} // namespace detail

// The end of a command on an OpenCL queue. Its destructor does not wait.
class Event : public detail::Handle<hipcl_event, hipcl_event_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT Result<void> wait() const { return detail::done(hipcl_event_wait(get())); }
    HIPCL_RESULT Result<bool> is_complete() const {
        std::int32_t complete = 0;
        const hipcl_status status = hipcl_event_is_complete(get(), &complete);
        bool is = complete != 0;
        return detail::made<bool>(status, is);
    }
    HIPCL_RESULT Result<struct _cl_event *> native() const {
        struct _cl_event *native = nullptr;
        return detail::made<struct _cl_event *>(hipcl_event_native(get(), &native), native);
    }
};

// An in-order OpenCL queue.
class Queue : public detail::Handle<hipcl_queue, hipcl_queue_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT Result<struct _cl_command_queue *> native() const {
        struct _cl_command_queue *native = nullptr;
        return detail::made<struct _cl_command_queue *>(hipcl_queue_native(get(), &native), native);
    }
    HIPCL_RESULT Result<void> finish() { return detail::done(hipcl_queue_finish(get())); }
    // The end of all that is enqueued by now.
    HIPCL_RESULT Result<Event> record() const {
        hipcl_event event = nullptr;
        return detail::made<Event>(hipcl_queue_record(get(), &event), event);
    }
};

// A HIP stream.
class Stream : public detail::Handle<hipcl_stream, hipcl_stream_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT Result<struct ihipStream_t *> native() const {
        struct ihipStream_t *native = nullptr;
        return detail::made<struct ihipStream_t *>(hipcl_stream_native(get(), &native), native);
    }
    HIPCL_RESULT Result<void> synchronize() { return detail::done(hipcl_stream_synchronize(get())); }
};

class Access;

// A descriptor of memory. It belongs to whoever has this value, and is closed by close(2).
struct [[nodiscard]] ExportedFd {
    int fd;
    std::size_t offset;
    std::size_t bytes;
};

namespace detail {

// What has data() and size() of elements that are copied as bytes: a vector, an array, a span.
template <class C> using Element = std::remove_pointer_t<decltype(std::data(std::declval<C &>()))>;

} // namespace detail

// Memory that both APIs see.
class Buffer {
  public:
    Buffer() noexcept = default;
    // Takes the handle over.
    explicit Buffer(hipcl_buffer raw) : owner_(raw, Deleter()) {}
    Buffer(Buffer &&) noexcept = default;
    Buffer &operator=(Buffer &&) noexcept = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    // The C handle, which stays this object's.
    hipcl_buffer get() const noexcept { return owner_.get(); }
    explicit operator bool() const noexcept { return owner_ != nullptr; }
    // Destroys the buffer now, as the destructor does, and returns the failure of work that used it. HIPCL_ERROR_BUSY
    // while an access is open: the object then keeps the buffer.
    HIPCL_RESULT Result<void> close() {
        const hipcl_status status = hipcl_buffer_destroy(get());
        if (status != HIPCL_ERROR_BUSY && owner_ != nullptr) std::get_deleter<Deleter>(owner_)->is_done = true;
        if (status != HIPCL_ERROR_BUSY) owner_.reset();
        return detail::done(status);
    }

    HIPCL_RESULT Result<hipcl_buffer_info> info() const {
        hipcl_buffer_info info = {};
        info.struct_size = sizeof info;
        return detail::made<hipcl_buffer_info>(hipcl_buffer_get_info(get(), &info), info);
    }
    // `count` elements, which are the whole buffer.
    template <class T> HIPCL_RESULT Result<void> upload(const T *data, std::size_t count) {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        return detail::done(hipcl_buffer_upload(get(), data, bytes_of<T>(count)));
    }
    template <class T> HIPCL_RESULT Result<void> download(T *data, std::size_t count) const {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        return detail::done(hipcl_buffer_download(get(), data, bytes_of<T>(count)));
    }
    // All elements of a vector, an array or a span, which are the whole buffer.
    template <class C, class = detail::Element<const C>> HIPCL_RESULT Result<void> upload(const C &data) {
        return upload(std::data(data), std::size(data));
    }
    template <class C, class = detail::Element<C>> HIPCL_RESULT Result<void> download(C &&data) const {
        return download(std::data(data), std::size(data));
    }
    // `count` elements from element `offset` on.
    template <class T> HIPCL_RESULT Result<void> upload_at(std::size_t offset, const T *data, std::size_t count) {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        return detail::done(hipcl_buffer_upload_at(get(), bytes_of<T>(offset), data, bytes_of<T>(count)));
    }
    template <class T> HIPCL_RESULT Result<void> download_at(std::size_t offset, T *data, std::size_t count) const {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        return detail::done(hipcl_buffer_download_at(get(), bytes_of<T>(offset), data, bytes_of<T>(count)));
    }
    // The same, enqueued and not waited for. The host memory stays, and is left alone, until the event has ended.
    template <class T>
    HIPCL_RESULT Result<Event> upload_async(const Queue &queue, std::size_t offset, const T *data, std::size_t count) {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        hipcl_event event = nullptr;
        const hipcl_status status = hipcl_buffer_upload_on_queue(get(), queue.get(), bytes_of<T>(offset), data,
                                                                 bytes_of<T>(count), &event);
        return detail::made<Event>(status, event);
    }
    template <class T>
    HIPCL_RESULT Result<Event> download_async(const Queue &queue, std::size_t offset, T *data,
                                              std::size_t count) const {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        hipcl_event event = nullptr;
        const hipcl_status status = hipcl_buffer_download_on_queue(get(), queue.get(), bytes_of<T>(offset), data,
                                                                   bytes_of<T>(count), &event);
        return detail::made<Event>(status, event);
    }
    // `value` to `count` elements from element `offset` on; enqueued and not waited for. T has 1, 2, 4, 8 or 16 bytes.
    template <class T>
    HIPCL_RESULT Result<Event> fill(const Queue &queue, std::size_t offset, std::size_t count, const T &value) {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        static_assert(sizeof(T) <= 16 && (sizeof(T) & (sizeof(T) - 1)) == 0, "a pattern has 1, 2, 4, 8 or 16 bytes");
        hipcl_event event = nullptr;
        const hipcl_status status = hipcl_buffer_fill_on_queue(get(), queue.get(), bytes_of<T>(offset),
                                                               bytes_of<T>(count), &value, sizeof value, &event);
        return detail::made<Event>(status, event);
    }
    // `bytes` bytes of another buffer, from its byte `source_offset` on, to this one's byte `offset`; enqueued and not
    // waited for.
    HIPCL_RESULT Result<Event> copy_from(const Queue &queue, std::size_t offset, const Buffer &source,
                                         std::size_t source_offset, std::size_t bytes) {
        hipcl_event event = nullptr;
        const hipcl_status status = hipcl_buffer_copy_on_queue(get(), offset, source.get(), source_offset, bytes,
                                                               queue.get(), &event);
        return detail::made<Event>(status, event);
    }
    // On a queue or a stream, with HIPCL_ACCESS_READ or HIPCL_ACCESS_WRITE.
    HIPCL_RESULT Result<Access> begin(const Queue &queue, hipcl_access_mode mode);
    HIPCL_RESULT Result<Access> begin(const Stream &stream, hipcl_access_mode mode);

    HIPCL_RESULT Result<ExportedFd> export_fd() {
        ExportedFd exported = {-1, 0, 0};
        const hipcl_status status = hipcl_buffer_export_fd(get(), &exported.fd, &exported.offset, &exported.bytes);
        return detail::made<ExportedFd>(status, exported);
    }

  private:
    friend class Access;
    struct Deleter {
        void operator()(hipcl_buffer raw) const noexcept {
            if (raw != nullptr && !is_done) (void)hipcl_buffer_destroy(raw);
        }
        // The handle was destroyed by close().
        bool is_done = false;
    };
    // What would overflow is a length that no buffer has.
    template <class T> static std::size_t bytes_of(std::size_t count) noexcept {
        return count <= SIZE_MAX / sizeof(T) ? count * sizeof(T) : SIZE_MAX;
    }
    // An access has a share, so that it ends before the buffer is destroyed.
    std::shared_ptr<hipcl_buffer_s> owner_;
};

// Permission to use a buffer on one queue or stream until this object is destroyed.
class [[nodiscard]] Access {
  public:
    Access() noexcept = default;
    Access(Access &&) noexcept = default;
    Access &operator=(Access &&other) noexcept {
        if (this == &other) return *this;
        // This one's access ends before the buffer that it keeps.
        handle_ = std::move(other.handle_);
        buffer_ = std::move(other.buffer_);
        return *this;
    }

    // The C handle, which stays this object's.
    hipcl_access get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
    // Ends the access now.
    void end() noexcept {
        handle_.reset();
        buffer_.reset();
    }
    // HIP's pointer, or OpenCL's where that is a pointer.
    template <class T = void> HIPCL_RESULT Result<T *> pointer() const {
        void *pointer = nullptr;
        const hipcl_status status = hipcl_access_pointer(get(), &pointer);
        T *typed = static_cast<T *>(pointer);
        return detail::made<T *>(status, typed);
    }
    // A cl_mem of OpenCL's headers. It belongs to the buffer.
    HIPCL_RESULT Result<struct _cl_mem *> cl_mem() const {
        struct _cl_mem *native = nullptr;
        return detail::made<struct _cl_mem *>(hipcl_access_cl_mem(get(), &native), native);
    }

  private:
    friend class Buffer;
    HIPCL_RESULT static Result<Access> of(hipcl_status status, hipcl_access raw,
                                          const std::shared_ptr<hipcl_buffer_s> &buffer) {
        Access access;
        access.buffer_ = buffer;
        access.handle_ = Handle(raw);
        return detail::made<Access>(status, access);
    }
    using Handle = detail::Handle<hipcl_access, hipcl_access_end>;
    // In this order: the handle goes first.
    std::shared_ptr<hipcl_buffer_s> buffer_;
    Handle handle_;
};

inline Result<Access> Buffer::begin(const Queue &queue, hipcl_access_mode mode) {
    hipcl_access access = nullptr;
    const hipcl_status status = hipcl_access_begin_queue(get(), queue.get(), mode, &access);
    return Access::of(status, access, owner_);
}

inline Result<Access> Buffer::begin(const Stream &stream, hipcl_access_mode mode) {
    hipcl_access access = nullptr;
    const hipcl_status status = hipcl_access_begin_stream(get(), stream.get(), mode, &access);
    return Access::of(status, access, owner_);
}

// Arguments of a kernel. An argument of any other type is a value.
struct Read {
    const Buffer &buffer;
};
struct Write {
    Buffer &buffer;
};
struct Local {
    std::size_t bytes;
};

namespace detail {

inline hipcl_arg arg_of(hipcl_arg_kind kind) {
    hipcl_arg arg = {};
    arg.struct_size = sizeof arg;
    arg.kind = kind;
    return arg;
}
inline hipcl_arg arg(const Read &read) {
    hipcl_arg arg = arg_of(HIPCL_ARG_READ);
    arg.buffer = read.buffer.get();
    return arg;
}
inline hipcl_arg arg(const Write &write) {
    hipcl_arg arg = arg_of(HIPCL_ARG_WRITE);
    arg.buffer = write.buffer.get();
    return arg;
}
inline hipcl_arg arg(const Access &access) {
    hipcl_arg arg = arg_of(HIPCL_ARG_ACCESS);
    arg.access = access.get();
    return arg;
}
inline hipcl_arg arg(const Local &local) {
    hipcl_arg arg = arg_of(HIPCL_ARG_LOCAL);
    arg.bytes = local.bytes;
    return arg;
}
// The value stays where it is until the launch returns.
template <class T> hipcl_arg arg(const T &value) {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value,
                  "a kernel takes hipcl::Read, Write, Local, an access, or a plain value");
    hipcl_arg arg = arg_of(HIPCL_ARG_VALUE);
    arg.value = &value;
    arg.bytes = sizeof value;
    return arg;
}

} // namespace detail

// The work-items of a launch, in one to three dimensions.
struct Range : hipcl_range {
    explicit Range(std::size_t x) : Range(1, x, 1, 1) {}
    Range(std::size_t x, std::size_t y) : Range(2, x, y, 1) {}
    Range(std::size_t x, std::size_t y, std::size_t z) : Range(3, x, y, z) {}
    // In work-groups of this size.
    Range &in_groups_of(std::size_t x, std::size_t y = 1, std::size_t z = 1) {
        local[0] = x;
        local[1] = y;
        local[2] = z;
        return *this;
    }

  private:
    Range(std::uint32_t count, std::size_t x, std::size_t y, std::size_t z) : hipcl_range() {
        struct_size = sizeof(hipcl_range);
        dimensions = count;
        global[0] = x;
        global[1] = y;
        global[2] = z;
    }
};

// A kernel of an OpenCL program.
class Kernel : public detail::Handle<hipcl_kernel, hipcl_kernel_destroy> {
  public:
    using Handle::Handle;
    // launch(queue, Range(1024), Write{buffer}, 2.0f)
    template <class... Args>
    HIPCL_RESULT Result<void> launch(const Queue &queue, const Range &range, const Args &...args) const {
        const hipcl_arg list[] = {detail::arg(args)..., hipcl_arg()};
        return detail::done(hipcl_kernel_launch_on_queue(get(), queue.get(), &range, list, sizeof...(args)));
    }
    template <class... Args>
    HIPCL_RESULT Result<void> launch(const Stream &stream, const Range &range, const Args &...args) const {
        const hipcl_arg list[] = {detail::arg(args)..., hipcl_arg()};
        return detail::done(hipcl_kernel_launch_on_stream(get(), stream.get(), &range, list, sizeof...(args)));
    }
};

// A built OpenCL program.
class Program : public detail::Handle<hipcl_program, hipcl_program_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT Result<Kernel> kernel(const char *name) const {
        hipcl_kernel kernel = nullptr;
        return detail::made<Kernel>(hipcl_kernel_create(get(), name, &kernel), kernel);
    }
};

// A column-major matrix of complex numbers in a buffer, to be read: the distance of its columns, and where it begins,
// in numbers.
struct MatrixIn {
    const Buffer &buffer;
    std::size_t ld;
    std::size_t offset = 0;
    // The distance to the next matrix of a batch.
    std::size_t stride = 0;
};

// The same, to be written.
struct MatrixOut {
    Buffer &buffer;
    std::size_t ld;
    std::size_t offset = 0;
    std::size_t stride = 0;
};

// rocBLAS and rocSOLVER on one stream.
class Blas : public detail::Handle<hipcl_blas, hipcl_blas_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT Result<void> cgemm(hipcl_op op_a, hipcl_op op_b, std::size_t m, std::size_t n, std::size_t k,
                       std::complex<float> alpha, const MatrixIn &a, const MatrixIn &b, std::complex<float> beta,
                       const MatrixOut &c, std::size_t count = 1) {
        const hipcl_complex one = {alpha.real(), alpha.imag()}, two = {beta.real(), beta.imag()};
        if (count == 1) {
            return detail::done(hipcl_cgemm(get(), op_a, op_b, m, n, k, &one, a.buffer.get(), a.offset, a.ld,
                                            b.buffer.get(), b.offset, b.ld, &two, c.buffer.get(), c.offset, c.ld));
        }
        return detail::done(hipcl_cgemm_strided_batched(
            get(), op_a, op_b, m, n, k, &one, a.buffer.get(), a.offset, a.ld, a.stride, b.buffer.get(), b.offset, b.ld,
            b.stride, &two, c.buffer.get(), c.offset, c.ld, c.stride, count));
    }
    HIPCL_RESULT Result<void> cinverse_hermitian(hipcl_fill fill, std::size_t n, const MatrixOut &a,
                                                 std::size_t count = 1, std::size_t *failed = nullptr) {
        return detail::done(hipcl_cinverse_hermitian(get(), fill, n, a.buffer.get(), a.offset, a.ld, a.stride, count,
                                                     failed));
    }
};

// A plan for transforms of one length.
class Fft : public detail::Handle<hipcl_fft, hipcl_fft_destroy> {
  public:
    using Handle::Handle;
    // In place if the two are one buffer.
    HIPCL_RESULT Result<void> enqueue(const Queue &queue, hipcl_fft_direction direction, const Buffer &input,
                                      Buffer &output) {
        return detail::done(hipcl_fft_enqueue_on_queue(get(), queue.get(), direction, input.get(), output.get()));
    }
    HIPCL_RESULT Result<void> enqueue(const Stream &stream, hipcl_fft_direction direction, const Buffer &input,
                                      Buffer &output) {
        return detail::done(hipcl_fft_enqueue_on_stream(get(), stream.get(), direction, input.get(), output.get()));
    }
};

// Options with the defaults.
struct Options : hipcl_bridge_options {
    Options() : hipcl_bridge_options() {
        struct_size = sizeof(hipcl_bridge_options);
        (void)hipcl_bridge_options_init(this);
    }
};

// What to transform, with the defaults; set the length.
struct FftOptions : hipcl_fft_options {
    explicit FftOptions(std::size_t transform_length) : hipcl_fft_options() {
        struct_size = sizeof(hipcl_fft_options);
        (void)hipcl_fft_options_init(this);
        length = transform_length;
    }
};

// One OpenCL device and one HIP device that are the same hardware.
class Bridge : public detail::Handle<hipcl_bridge, hipcl_bridge_destroy> {
  public:
    using Handle::Handle;
    HIPCL_RESULT static Result<Bridge> open(const Options &options = Options()) {
        hipcl_bridge bridge = nullptr;
        return detail::made<Bridge>(hipcl_bridge_open(&options, &bridge), bridge);
    }
    // Handles of OpenCL's and HIP's headers; cl::Context and its like give theirs by operator()().
    HIPCL_RESULT static Result<Bridge> adopt(struct _cl_context *context, struct _cl_device_id *device,
                                struct _cl_command_queue *queue, struct ihipStream_t *stream,
                                const Options &options = Options()) {
        hipcl_bridge bridge = nullptr;
        return detail::made<Bridge>(hipcl_bridge_adopt(context, device, queue, stream, &options, &bridge), bridge);
    }

    HIPCL_RESULT Result<hipcl_native_handles> native() const {
        hipcl_native_handles native = {};
        native.struct_size = sizeof native;
        return detail::made<hipcl_native_handles>(hipcl_bridge_native(get(), &native), native);
    }
    HIPCL_RESULT Result<hipcl_counters> counters() const {
        hipcl_counters counters = {};
        counters.struct_size = sizeof counters;
        return detail::made<hipcl_counters>(hipcl_bridge_counters(get(), &counters), counters);
    }
    HIPCL_RESULT Result<hipcl_program_cache_stats> program_cache() const {
        hipcl_program_cache_stats stats = {};
        stats.struct_size = sizeof stats;
        return detail::made<hipcl_program_cache_stats>(hipcl_bridge_program_cache(get(), &stats), stats);
    }
    HIPCL_RESULT Result<std::string> report(hipcl_format format = HIPCL_FORMAT_TEXT) const {
        hipcl_text text = nullptr;
        return detail::string(hipcl_bridge_report(get(), format, &text), text);
    }
    HIPCL_RESULT Result<std::string> take_deferred_errors() {
        hipcl_text text = nullptr;
        return detail::string(hipcl_bridge_take_deferred_errors(get(), &text), text);
    }

    HIPCL_RESULT Result<Queue> queue() const {
        hipcl_queue queue = nullptr;
        return detail::made<Queue>(hipcl_queue_create(get(), &queue), queue);
    }
    HIPCL_RESULT Result<Queue> main_queue() const {
        hipcl_queue queue = nullptr;
        return detail::made<Queue>(hipcl_queue_main(get(), &queue), queue);
    }
    HIPCL_RESULT Result<Queue> adopt(struct _cl_command_queue *native) const {
        hipcl_queue queue = nullptr;
        return detail::made<Queue>(hipcl_queue_adopt(get(), native, &queue), queue);
    }
    HIPCL_RESULT Result<Stream> stream() const {
        hipcl_stream stream = nullptr;
        return detail::made<Stream>(hipcl_stream_create(get(), &stream), stream);
    }
    HIPCL_RESULT Result<Stream> main_stream() const {
        hipcl_stream stream = nullptr;
        return detail::made<Stream>(hipcl_stream_main(get(), &stream), stream);
    }
    HIPCL_RESULT Result<Stream> adopt(struct ihipStream_t *native) const {
        hipcl_stream stream = nullptr;
        return detail::made<Stream>(hipcl_stream_adopt(get(), native, &stream), stream);
    }

    // `count` elements of T.
    template <class T>
    HIPCL_RESULT Result<Buffer> alloc(std::size_t count, hipcl_route route = HIPCL_ROUTE_AUTO) const {
        const std::size_t bytes = count <= SIZE_MAX / sizeof(T) ? count * sizeof(T) : SIZE_MAX;
        hipcl_buffer buffer = nullptr;
        return detail::made<Buffer>(hipcl_buffer_create_on(get(), route, bytes, &buffer), buffer);
    }
    HIPCL_RESULT Result<Buffer> alloc_exportable(std::size_t bytes) const {
        hipcl_buffer buffer = nullptr;
        return detail::made<Buffer>(hipcl_buffer_create_exportable(get(), bytes, &buffer), buffer);
    }
    HIPCL_RESULT Result<Buffer> adopt(struct _cl_mem *native, hipcl_route route = HIPCL_ROUTE_AUTO) const {
        hipcl_buffer buffer = nullptr;
        return detail::made<Buffer>(hipcl_buffer_adopt_cl_mem(get(), native, route, &buffer), buffer);
    }
    // An exception that leaves `released` ends the process.
    HIPCL_RESULT Result<Buffer> adopt_svm(void *pointer, std::size_t bytes, hipcl_svm grain,
                                          void (*released)(void *) = nullptr, void *user = nullptr) const {
        hipcl_buffer buffer = nullptr;
        const hipcl_status status = hipcl_buffer_adopt_svm(get(), pointer, bytes, grain, released, user, &buffer);
        return detail::made<Buffer>(status, buffer);
    }
    // An exception that leaves `released` ends the process.
    HIPCL_RESULT Result<Buffer> adopt_hip(void *pointer, std::size_t bytes, void (*released)(void *) = nullptr,
                                          void *user = nullptr) const {
        hipcl_buffer buffer = nullptr;
        return detail::made<Buffer>(hipcl_buffer_adopt_hip(get(), pointer, bytes, released, user, &buffer), buffer);
    }
    HIPCL_RESULT Result<Buffer> adopt_fd(int fd, std::size_t offset, std::size_t bytes) const {
        hipcl_buffer buffer = nullptr;
        return detail::made<Buffer>(hipcl_buffer_adopt_fd(get(), fd, offset, bytes, &buffer), buffer);
    }

    HIPCL_RESULT Result<Program> build(const char *source, const char *options = nullptr) const {
        hipcl_program program = nullptr;
        return detail::made<Program>(hipcl_program_build(get(), source, options, &program), program);
    }
    HIPCL_RESULT Result<Blas> blas(const Stream &stream) const {
        hipcl_blas blas = nullptr;
        return detail::made<Blas>(hipcl_blas_create(get(), stream.get(), &blas), blas);
    }
    HIPCL_RESULT Result<Fft> fft(std::size_t length, std::size_t batch = 1) const {
        hipcl_fft fft = nullptr;
        return detail::made<Fft>(hipcl_fft_create(get(), length, batch, &fft), fft);
    }
    Result<Fft> fft(const FftOptions &options) const {
        hipcl_fft fft = nullptr;
        return detail::made<Fft>(hipcl_fft_create_with(get(), &options, &fft), fft);
    }
};

// The findings of the command hipcl doctor.
HIPCL_RESULT inline Result<std::string> doctor(hipcl_format format = HIPCL_FORMAT_TEXT, const char *program = nullptr) {
    hipcl_text text = nullptr;
    return detail::string(hipcl_doctor(program, format, &text), text);
}

#undef HIPCL_RESULT

#ifdef HIPCL_EXPECTED
} // namespace expected
#else
} // namespace throwing
#endif

} // namespace hipcl

#endif
