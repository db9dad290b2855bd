// What the programs that try hipcl/manager_opencl.hpp share.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <hipcl/manager_opencl.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace ManagerOpenCL;

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                            \
            std::exit(1);                                                                                             \
        }                                                                                                             \
    } while (0)

// The call throws an exception of this type with these words.
#define THROWS(type, words, call)                                                                                     \
    do {                                                                                                              \
        try {                                                                                                         \
            call;                                                                                                     \
            std::fprintf(stderr, "%s:%d: %s does not throw\n", __FILE__, __LINE__, #call);                            \
            std::exit(1);                                                                                             \
        } catch (const type &error) {                                                                                 \
            if (std::strstr(error.what(), words) == nullptr) {                                                        \
                std::fprintf(stderr, "%s:%d: %s: not \"%s\": %s\n", __FILE__, __LINE__, #call, words, error.what());  \
                std::exit(1);                                                                                         \
            }                                                                                                         \
        }                                                                                                             \
    } while (0)

constexpr std::size_t LEN = 4096, BYTES = LEN * sizeof(ComplexFloat);
const std::array<std::size_t, 3> ALL = {LEN, 1, 1}, ANY = {0, 0, 0};

const char *const SOURCE = "kernel void add(global float2 *x, float by) { x[get_global_id(0)].x += by; }\n"
                           "kernel void twice(global float2 *x) { x[get_global_id(0)] *= 2.0f; }\n"
                           "kernel void sum(global const float2 *x, global float2 *y) {\n"
                           "    y[get_global_id(0)] += x[get_global_id(0)];\n"
                           "}\n"
                           // Slow. What it computes is 0, which no compiler finds out.
                           "float delay(float x) {\n"
                           "    for (int i = 0; i < 5000000; i++) x = x * 0.5f + 1.0f;\n"
                           "    return x > 4.0f ? x : 0.0f;\n"
                           "}\n"
                           "kernel void slow(global float2 *x) { x[0].x += delay(x[0].x); }\n"
                           // The last element comes late.
                           "kernel void slow_twice(global float2 *x) {\n"
                           "    const bool is_last = get_global_id(0) + 1 == get_global_size(0);\n"
                           "    const float none = is_last ? delay(1.0f) : 0.0f;\n"
                           "    x[get_global_id(0)] = x[get_global_id(0)] * 2.0f + none;\n"
                           "}\n";

inline ComplexVector ramp() {
    ComplexVector data(LEN);
    for (std::size_t i = 0; i < LEN; i++) data[i] = ComplexFloat(static_cast<float>(i), 1.0f);
    return data;
}

// What another library calls, from the table of cl_khr_icd, so that no OpenCL library is linked.
struct Other {
    cl_context (*create_context)(const std::intptr_t *, cl_uint, const cl_device_id *, void *, void *, cl_int *);
    cl_int (*release_context)(cl_context);
    cl_command_queue (*create_queue)(cl_context, cl_device_id, cl_bitfield, cl_int *);
    cl_int (*release_queue)(cl_command_queue);
    cl_mem (*create_buffer)(cl_context, cl_mem_flags, std::size_t, void *, cl_int *);
    cl_mem (*create_part)(cl_mem, cl_mem_flags, cl_uint, const void *, cl_int *);
    cl_int (*release_mem)(cl_mem);
    cl_int (*mem_info)(cl_mem, cl_uint, std::size_t, void *, std::size_t *);
    cl_kernel (*create_kernel)(cl_program, const char *, cl_int *);
    cl_int (*release_kernel)(cl_kernel);
    cl_int (*set_argument)(cl_kernel, cl_uint, std::size_t, const void *);
    cl_event (*create_user_event)(cl_context, cl_int *);
    cl_int (*set_status)(cl_event, cl_int);
    cl_int (*event_info)(cl_event, cl_uint, std::size_t, void *, std::size_t *);
    cl_int (*release_event)(cl_event);
    cl_int (*launch)(cl_command_queue, cl_kernel, cl_uint, const std::size_t *, const std::size_t *, const std::size_t *,
                     cl_uint, const cl_event *, cl_event *);
    cl_int (*barrier)(cl_command_queue, cl_uint, const cl_event *, cl_event *);
    cl_int (*flush)(cl_command_queue);
    cl_int (*finish)(cl_command_queue);

    explicit Other(cl_platform_id platform) {
        detail::OpenCL::load(platform, 4, create_context);
        detail::OpenCL::load(platform, 7, release_context);
        detail::OpenCL::load(platform, 9, create_queue);
        detail::OpenCL::load(platform, 11, release_queue);
        detail::OpenCL::load(platform, 14, create_buffer);
        detail::OpenCL::load(platform, 18, release_mem);
        detail::OpenCL::load(platform, 20, mem_info);
        detail::OpenCL::load(platform, 34, create_kernel);
        detail::OpenCL::load(platform, 37, release_kernel);
        detail::OpenCL::load(platform, 38, set_argument);
        detail::OpenCL::load(platform, 42, event_info);
        detail::OpenCL::load(platform, 44, release_event);
        detail::OpenCL::load(platform, 46, flush);
        detail::OpenCL::load(platform, 47, finish);
        detail::OpenCL::load(platform, 59, launch);
        detail::OpenCL::load(platform, 82, create_part);
        detail::OpenCL::load(platform, 84, create_user_event);
        detail::OpenCL::load(platform, 85, set_status);
        detail::OpenCL::load(platform, 106, barrier);
    }
    cl_mem buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void *pointer = nullptr) const {
        cl_int error = -1;
        const cl_mem made = create_buffer(context, flags, bytes, pointer, &error);
        CHECK(error == CL_SUCCESS);
        return made;
    }
    cl_mem part(cl_mem whole, std::size_t offset, std::size_t bytes) const {
        const std::size_t region[] = {offset, bytes};
        cl_int error = -1;
        const cl_mem made = create_part(whole, CL_MEM_READ_WRITE, 0x1220, region, &error);
        CHECK(error == CL_SUCCESS);
        return made;
    }
    cl_command_queue queue() const {
        cl_int error = -1;
        const auto &core = OpenCLCore::GetInstance();
        const cl_command_queue made = create_queue(core.GetContext(), core.GetDevice(), 0, &error);
        CHECK(error == CL_SUCCESS);
        return made;
    }
    // A kernel with a buffer as its only argument.
    cl_kernel kernel(cl_program program, const char *name, cl_mem buffer) const {
        cl_int error = -1;
        const cl_kernel made = create_kernel(program, name, &error);
        CHECK(error == CL_SUCCESS && set_argument(made, 0, sizeof buffer, &buffer) == CL_SUCCESS);
        return made;
    }
    cl_uint references(cl_mem buffer) const {
        cl_uint count = 0;
        CHECK(mem_info(buffer, 0x1105, sizeof count, &count, nullptr) == CL_SUCCESS);
        return count;
    }
    // CL_COMPLETE is 0, CL_RUNNING is 1; before that a command waits.
    cl_int state(cl_event event) const {
        cl_int state = -1;
        CHECK(event_info(event, 0x11D3, sizeof state, &state, nullptr) == CL_SUCCESS);
        return state;
    }
};

// Holds queues back until it is opened.
class Gate {
  public:
    explicit Gate(const Other &other) : other_(other) {
        cl_int error = -1;
        event_ = other_.create_user_event(OpenCLCore::GetInstance().GetContext(), &error);
        CHECK(error == CL_SUCCESS);
    }
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;
    ~Gate() { CHECK(other_.release_event(event_) == CL_SUCCESS); }

    // What is enqueued there from now on waits.
    void close(cl_command_queue queue) const {
        CHECK(other_.barrier(queue, 1, &event_, nullptr) == CL_SUCCESS && other_.flush(queue) == CL_SUCCESS);
    }
    void open() const { CHECK(other_.set_status(event_, 0) == CL_SUCCESS); }
    cl_event event() const { return event_; }

  private:
    const Other &other_;
    cl_event event_;
};

// Commands on queues that this header does not know, which pass the time: a command that wrongly waits for nothing has
// run when they are done.
class Delay {
  public:
    explicit Delay(const Other &other, cl_program program)
        : other_(other), queue_(other.queue()),
          buffer_(other.buffer(OpenCLCore::GetInstance().GetContext(), CL_MEM_READ_WRITE, sizeof(ComplexFloat))),
          kernel_(other.kernel(program, "slow", buffer_)) {}
    Delay(const Delay &) = delete;
    Delay &operator=(const Delay &) = delete;
    ~Delay() {
        CHECK(other_.release_kernel(kernel_) == CL_SUCCESS && other_.release_mem(buffer_) == CL_SUCCESS);
        CHECK(other_.release_queue(queue_) == CL_SUCCESS);
    }
    void pass() const {
        const std::size_t one = 1;
        CHECK(other_.launch(queue_, kernel_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr) == CL_SUCCESS);
        CHECK(other_.finish(queue_) == CL_SUCCESS);
    }

  private:
    const Other &other_;
    cl_command_queue queue_;
    cl_mem buffer_;
    cl_kernel kernel_;
};

// Whether a command ends although a gate is closed.
inline bool ends(const Other &other, cl_event event) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (other.state(event) > 0) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::yield();
    }
    return other.state(event) == 0;
}

#endif
