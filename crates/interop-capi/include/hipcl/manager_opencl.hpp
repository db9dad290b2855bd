// ManagerOpenCL on hipcl, for C++17: the classes of that library on memory that HIP and rocBLAS use as well.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A program that was written for ManagerOpenCL includes this header in place of the old ones. Names and signatures are
// the old ones. New are:
//
//   GetSharedBuffer()  of every buffer: its hipcl::Buffer, for cgemm, inverses, accesses and descriptors
//   GetBridge()        of the engine: the hipcl::Bridge, for streams, BLAS handles and the copy counters
//
// Errors are exceptions that name the cause and the remedy: OpenCLError for what OpenCL refuses, hipcl::Error for what
// hipcl refuses, std::invalid_argument for arguments that no call can use. Nothing is printed unless the function's name
// begins with Print, and nothing is replaced by something slower: what is not possible is an error.
//
// Who uses the memory. A buffer is OpenCL's from its first use until GetSharedBuffer(), which waits for all queues that
// this header knows: those of the pool, and those that buffers and ExternalQueueWrapper were created with. From then on
// it is hipcl's, until the next call on the buffer (GetCLMem(), SetAsKernelArg(), Write(), ExecuteKernel() with it),
// which waits for HIP. So call one of these again before you enqueue OpenCL commands of your own. Transfers and launches
// of this header run in the order of the calls, whatever their queues. A transfer also runs after the commands that the
// program itself has enqueued on queues of the pool.
//
// Threads. Different buffers may be used on different threads, and the engine, the pool and the caches on all of them. A
// buffer is used on one thread at a time, as before.
//
// Call Cleanup() before main() returns. Objects that are still alive then keep what they need.
#ifndef HIPCL_MANAGER_OPENCL_HPP
#define HIPCL_MANAGER_OPENCL_HPP

#ifdef HIPCL_EXPECTED
#error "manager_opencl.hpp reports errors by exceptions: compile this file without HIPCL_EXPECTED"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../hipcl.hpp"

// The old headers included OpenCL's, so this one does if it is there. No OpenCL library is linked for this header.
#if __has_include(<CL/cl.h>)
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#else
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
typedef std::int32_t cl_int;
typedef std::uint32_t cl_uint;
typedef std::uint64_t cl_ulong;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;
typedef cl_bitfield cl_device_type;
typedef cl_bitfield cl_mem_flags;
typedef cl_bitfield cl_map_flags;
typedef cl_bitfield cl_command_queue_properties;
typedef cl_uint cl_mem_object_type;
#define CL_SUCCESS 0
#define CL_DEVICE_TYPE_CPU (1 << 1)
#define CL_DEVICE_TYPE_GPU (1 << 2)
#define CL_MEM_READ_WRITE (1 << 0)
#define CL_MEM_WRITE_ONLY (1 << 1)
#define CL_MEM_READ_ONLY (1 << 2)
#endif

namespace ManagerOpenCL {

using ComplexFloat = std::complex<float>;
using ComplexVector = std::vector<ComplexFloat>;

// What kernels do with a buffer.
enum class MemoryType { GPU_READ_ONLY, GPU_WRITE_ONLY, GPU_READ_WRITE };

// GPU is the device that HIP computes on. CPU is the software device: the platform "host".
enum class DeviceType { GPU, CPU };

enum class MemoryStrategy {
    REGULAR_BUFFER,   // the best route of the bridge
    SVM_COARSE_GRAIN, // device memory with one address for OpenCL and HIP
    SVM_FINE_GRAIN,   // host memory on a GPU with its own memory; only if it is asked for by name
    SVM_FINE_SYSTEM,  // an error: plain host memory is none that HIP uses in place
    AUTO
};

inline std::string MemoryStrategyToString(MemoryStrategy strategy) {
    switch (strategy) {
    case MemoryStrategy::REGULAR_BUFFER: return "REGULAR_BUFFER";
    case MemoryStrategy::SVM_COARSE_GRAIN: return "SVM_COARSE_GRAIN";
    case MemoryStrategy::SVM_FINE_GRAIN: return "SVM_FINE_GRAIN";
    case MemoryStrategy::SVM_FINE_SYSTEM: return "SVM_FINE_SYSTEM";
    case MemoryStrategy::AUTO: return "AUTO";
    }
    return "UNKNOWN";
}

// What this header or OpenCL refuses.
class OpenCLError : public std::runtime_error {
  public:
    explicit OpenCLError(const std::string &text, cl_int code = CL_SUCCESS) : std::runtime_error(text), code_(code) {}
    // OpenCL's code; CL_SUCCESS if OpenCL was not asked.
    cl_int code() const noexcept { return code_; }

  private:
    cl_int code_;
};

namespace detail {

// Numbers of OpenCL's header.
constexpr cl_uint DEVICE_TYPE = 0x1000, DEVICE_MAX_COMPUTE_UNITS = 0x1002, DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
                  DEVICE_MAX_WORK_ITEM_SIZES = 0x1005, DEVICE_GLOBAL_MEM_SIZE = 0x101F, DEVICE_LOCAL_MEM_SIZE = 0x1023,
                  DEVICE_NAME = 0x102B, DEVICE_VENDOR = 0x102C, DRIVER_VERSION = 0x102D, DEVICE_VERSION = 0x102F,
                  DEVICE_SVM_CAPABILITIES = 0x1053, CONTEXT_DEVICES = 0x1081, QUEUE_CONTEXT = 0x1090,
                  QUEUE_DEVICE = 0x1091, MEM_TYPE = 0x1100, MEM_FLAGS = 0x1101, MEM_SIZE = 0x1102, MEM_HOST_PTR = 0x1103,
                  MEM_CONTEXT = 0x1106, MEM_USES_SVM_POINTER = 0x1109, MEM_OBJECT_BUFFER = 0x10F0,
                  PROGRAM_KERNEL_NAMES = 0x1168, PROGRAM_BUILD_LOG = 0x1183;
constexpr cl_int INVALID_KERNEL_NAME = -46;
constexpr cl_map_flags MAP_READ = 1, MAP_WRITE = 2;

struct CodeText {
    cl_int code;
    const char *name;
    const char *remedy;
};

inline const CodeText &text_of(cl_int code) {
    static const CodeText texts[] = {
        {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", "free buffers, or use smaller ones"},
        {-5, "CL_OUT_OF_RESOURCES", "use smaller work-groups or less memory, and look for an earlier error"},
        {-6, "CL_OUT_OF_HOST_MEMORY", "free host memory"},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "a command that this one waits for has failed"},
        {-30, "CL_INVALID_VALUE", "an argument, an offset or a size is wrong"},
        {-34, "CL_INVALID_CONTEXT", "pass objects of one context"},
        {-36, "CL_INVALID_COMMAND_QUEUE", "pass a living queue of the buffer's context"},
        {-38, "CL_INVALID_MEM_OBJECT", "pass a living buffer of the queue's context"},
        {-46, "CL_INVALID_KERNEL_NAME", "the program has no kernel of this name"},
        {-48, "CL_INVALID_KERNEL", "pass a living kernel of the queue's context"},
        {-49, "CL_INVALID_ARG_INDEX", "the kernel has fewer parameters"},
        {-50, "CL_INVALID_ARG_VALUE", "the parameter does not take this argument"},
        {-51, "CL_INVALID_ARG_SIZE", "the argument has not the size of the kernel's parameter"},
        {-52, "CL_INVALID_KERNEL_ARGS", "set every argument of the kernel before the launch"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE", "use work-groups that divide the range, or {0, 0, 0} for the driver's choice"},
        {-55, "CL_INVALID_WORK_ITEM_SIZE", "use smaller work-groups"},
        {-57, "CL_INVALID_EVENT_WAIT_LIST", "wait for living events of the queue's context"},
        {-58, "CL_INVALID_EVENT", "pass a living event"},
        {-61, "CL_INVALID_BUFFER_SIZE", "use a smaller buffer"},
        {-63, "CL_INVALID_GLOBAL_WORK_SIZE", "launch at least one work-item"},
    };
    static const CodeText unknown = {0, "an error", "CL/cl.h lists the codes"};
    for (const CodeText &text : texts) {
        if (text.code == code) return text;
    }
    return unknown;
}

} // namespace detail

// Throws if `error` is one.
inline void CheckCLError(cl_int error, const std::string &operation) {
    if (error == CL_SUCCESS) return;
    const detail::CodeText &text = detail::text_of(error);
    throw OpenCLError(operation + " failed: " + text.name + " (" + std::to_string(error) + "); " + text.remedy, error);
}

namespace detail {

// The functions that this header calls. They come from the table that every object of OpenCL begins with (cl_khr_icd), so
// that no OpenCL library is linked.
struct OpenCL {
    cl_int (*GetDeviceInfo)(cl_device_id, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_int (*GetContextInfo)(cl_context, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_int (*GetCommandQueueInfo)(cl_command_queue, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_int (*GetMemObjectInfo)(cl_mem, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id, cl_command_queue_properties, cl_int *) = nullptr;
    cl_int (*ReleaseCommandQueue)(cl_command_queue) = nullptr;
    cl_program (*CreateProgramWithSource)(cl_context, cl_uint, const char **, const std::size_t *, cl_int *) = nullptr;
    cl_int (*BuildProgram)(cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),
                           void *) = nullptr;
    cl_int (*GetProgramInfo)(cl_program, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_int (*GetProgramBuildInfo)(cl_program, cl_device_id, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
    cl_int (*ReleaseProgram)(cl_program) = nullptr;
    cl_kernel (*CreateKernel)(cl_program, const char *, cl_int *) = nullptr;
    cl_int (*ReleaseKernel)(cl_kernel) = nullptr;
    cl_int (*SetKernelArg)(cl_kernel, cl_uint, std::size_t, const void *) = nullptr;
    cl_int (*EnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const std::size_t *, const std::size_t *,
                                   const std::size_t *, cl_uint, const cl_event *, cl_event *) = nullptr;
    cl_int (*EnqueueReadBuffer)(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void *, cl_uint,
                                const cl_event *, cl_event *) = nullptr;
    cl_int (*EnqueueWriteBuffer)(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, const void *, cl_uint,
                                 const cl_event *, cl_event *) = nullptr;
    cl_int (*EnqueueCopyBuffer)(cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint,
                                const cl_event *, cl_event *) = nullptr;
    cl_int (*EnqueueMarkerWithWaitList)(cl_command_queue, cl_uint, const cl_event *, cl_event *) = nullptr;
    cl_int (*EnqueueBarrierWithWaitList)(cl_command_queue, cl_uint, const cl_event *, cl_event *) = nullptr;
    cl_int (*WaitForEvents)(cl_uint, const cl_event *) = nullptr;
    cl_int (*RetainEvent)(cl_event) = nullptr;
    cl_int (*ReleaseEvent)(cl_event) = nullptr;
    cl_int (*Flush)(cl_command_queue) = nullptr;
    cl_int (*Finish)(cl_command_queue) = nullptr;
    // Of OpenCL 2.0. Where they are missing there is no shared virtual memory, and nothing calls them.
    cl_int (*SetKernelArgSVMPointer)(cl_kernel, cl_uint, const void *) = nullptr;
    cl_int (*EnqueueSVMMemcpy)(cl_command_queue, cl_bool, void *, const void *, std::size_t, cl_uint, const cl_event *,
                               cl_event *) = nullptr;
    cl_int (*EnqueueSVMMap)(cl_command_queue, cl_bool, cl_map_flags, void *, std::size_t, cl_uint, const cl_event *,
                            cl_event *) = nullptr;
    cl_int (*EnqueueSVMUnmap)(cl_command_queue, void *, cl_uint, const cl_event *, cl_event *) = nullptr;

    OpenCL(cl_platform_id platform, cl_device_id device) {
        // The places in the table, which cl_khr_icd fixes.
        load(platform, 3, GetDeviceInfo);
        load(platform, 8, GetContextInfo);
        load(platform, 9, CreateCommandQueue);
        load(platform, 11, ReleaseCommandQueue);
        load(platform, 12, GetCommandQueueInfo);
        load(platform, 20, GetMemObjectInfo);
        load(platform, 26, CreateProgramWithSource);
        load(platform, 29, ReleaseProgram);
        load(platform, 30, BuildProgram);
        load(platform, 32, GetProgramInfo);
        load(platform, 33, GetProgramBuildInfo);
        load(platform, 34, CreateKernel);
        load(platform, 37, ReleaseKernel);
        load(platform, 38, SetKernelArg);
        load(platform, 41, WaitForEvents);
        load(platform, 43, RetainEvent);
        load(platform, 44, ReleaseEvent);
        load(platform, 46, Flush);
        load(platform, 47, Finish);
        load(platform, 48, EnqueueReadBuffer);
        load(platform, 49, EnqueueWriteBuffer);
        load(platform, 50, EnqueueCopyBuffer);
        load(platform, 59, EnqueueNDRangeKernel);
        load(platform, 105, EnqueueMarkerWithWaitList);
        load(platform, 106, EnqueueBarrierWithWaitList);
        // A table of OpenCL 1.2 ends before these.
        cl_bitfield svm = 0;
        if (GetDeviceInfo(device, DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr) == CL_SUCCESS && svm != 0) {
            load(platform, 129, EnqueueSVMMemcpy);
            load(platform, 131, EnqueueSVMMap);
            load(platform, 132, EnqueueSVMUnmap);
            load(platform, 134, SetKernelArgSVMPointer);
        }
    }

    // The function at a place of the table.
    template <class F> static void load(cl_platform_id platform, std::size_t place, F *&function) {
        void *const *const table = *reinterpret_cast<void *const *const *>(platform);
        if (table == nullptr || table[place] == nullptr) {
            throw OpenCLError("the OpenCL library has no cl_khr_icd function " + std::to_string(place) + "; use another one");
        }
        function = reinterpret_cast<F *>(table[place]);
    }
};

// The value of a query of OpenCL.
template <class T, class Object>
T queried(cl_int (*query)(Object, cl_uint, std::size_t, void *, std::size_t *), Object object, cl_uint what,
          const char *operation) {
    T value = {};
    CheckCLError(query(object, what, sizeof value, &value, nullptr), operation);
    return value;
}

template <class T> void not_null(T *pointer, const char *what) {
    if (pointer == nullptr) throw std::invalid_argument(std::string(what) + " is null");
}

inline std::size_t product(std::size_t count, std::size_t size, const char *what) {
    if (count == 0) throw std::invalid_argument(std::string(what) + ": 0 elements; ask for at least one");
    if (count > SIZE_MAX / size) throw std::invalid_argument(std::string(what) + ": more elements than the address space");
    return count * size;
}

class Memory;

// A queue that a hand-off waits for.
struct KnownQueue {
    KnownQueue(hipcl::Queue handle, cl_command_queue raw) : handle(std::move(handle)), raw(raw) {}
    hipcl::Queue handle;
    const cl_command_queue raw;
    // Whether the program has it, and may have enqueued commands of its own.
    std::atomic<bool> is_given{false};
};

// A bridge, OpenCL's functions, and what runs on them.
class Session : public std::enable_shared_from_this<Session> {
  public:
    static std::shared_ptr<Session> open(DeviceType type) {
        hipcl::Options options;
        if (type == DeviceType::CPU) options.platform = "host";
        auto session = std::make_shared<Session>(hipcl::Bridge::open(options));
        const auto kind = queried<cl_device_type>(session->cl.GetDeviceInfo, session->native.device, DEVICE_TYPE,
                                                  "clGetDeviceInfo(CL_DEVICE_TYPE)");
        if (type == DeviceType::GPU && (kind & CL_DEVICE_TYPE_CPU) != 0 && std::getenv("HIPCL_PLATFORM") == nullptr) {
            throw OpenCLError("DeviceType::GPU: there is no GPU that both OpenCL and HIP can use; `hipcl doctor` says why. "
                              "To compute on the processor, pass DeviceType::CPU or set HIPCL_PLATFORM=host");
        }
        return session;
    }

    static std::shared_ptr<Session> adopt(cl_context context, cl_device_id device, cl_command_queue queue) {
        auto session = std::make_shared<Session>(hipcl::Bridge::adopt(context, device, queue, nullptr));
        (void)session->give_main();
        return session;
    }

    explicit Session(hipcl::Bridge opened)
        : bridge(std::move(opened)), native(bridge.native()), cl(native.platform, native.device), lending(bridge.queue()),
          main(std::make_shared<KnownQueue>(bridge.main_queue(), native.queue)) {
        queues_.push_back(main);
        best_route_ = bridge.alloc<float>(1).info().route;
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    hipcl::Bridge bridge;
    const hipcl_native_handles native;
    const OpenCL cl;
    // Accesses for OpenCL begin on this queue, which runs nothing else.
    hipcl::Queue lending;
    const std::shared_ptr<KnownQueue> main;

    // The route of memory that is allocated without a wish.
    hipcl_route best_route() const noexcept { return best_route_; }

    std::shared_ptr<KnownQueue> new_queue() {
        hipcl::Queue handle = bridge.queue();
        const cl_command_queue raw = handle.native();
        return remember(std::move(handle), raw);
    }

    // Hand-offs wait for this queue as long as the result lives.
    std::shared_ptr<KnownQueue> known(cl_command_queue raw) {
        not_null(raw, "the command queue");
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (const auto &weak : queues_) {
                auto queue = weak.lock();
                if (queue && queue->raw == raw) return queue;
            }
        }
        auto queue = remember(bridge.adopt(raw), raw);
        queue->is_given = true;
        return queue;
    }
    // The main queue, for the program.
    cl_command_queue give_main() noexcept {
        main->is_given = true;
        return main->raw;
    }

    // Waits for everything that was enqueued.
    void finish_all() {
        for (const auto &queue : queues()) queue->handle.finish();
    }

    std::vector<std::shared_ptr<KnownQueue>> queues() {
        std::vector<std::shared_ptr<KnownQueue>> living;
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto &weak : queues_) {
            if (auto queue = weak.lock()) living.push_back(std::move(queue));
        }
        return living;
    }

    void remember(cl_mem object, const std::shared_ptr<Memory> &memory) {
        const std::lock_guard<std::mutex> lock(mutex_);
        memories_[object] = memory;
    }
    void forget(cl_mem object) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = memories_.find(object);
        if (found != memories_.end() && found->second.expired()) memories_.erase(found);
    }
    // The memory of a cl_mem that this header gave out; null for another one.
    std::shared_ptr<Memory> memory_of(cl_mem object) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = memories_.find(object);
        return found == memories_.end() ? nullptr : found->second.lock();
    }

    // What this header has copied by OpenCL's functions, which the bridge does not see.
    void count_input(std::size_t bytes) noexcept { input_ += bytes; }
    void count_result(std::size_t bytes) noexcept { result_ += bytes; }
    void count_data_set(std::size_t bytes) noexcept { data_set_ += bytes; }
    hipcl_counters counters() const {
        hipcl_counters all = bridge.counters();
        all.input += input_;
        all.result += result_;
        all.data_set += data_set_;
        return all;
    }

    // For memory that must not be freed any more.
    void keep(hipcl::Buffer buffer, hipcl::Access access) noexcept {
        try {
            (void)new std::pair<hipcl::Buffer, hipcl::Access>(std::move(buffer), std::move(access));
        } catch (const std::bad_alloc &) {
            // Then it is freed after all.
        }
    }
    // Errors of destructors, one line each.
    void defer(const std::string &text) noexcept {
        try {
            const std::lock_guard<std::mutex> lock(mutex_);
            deferred_ += text + "\n";
        } catch (const std::bad_alloc &) {
            // There is no memory to say it with.
        }
    }
    std::string take_deferred() {
        std::string taken;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            taken.swap(deferred_);
        }
        return taken + bridge.take_deferred_errors();
    }

    // Guards the arguments of kernels until the launch that uses them, and the order of commands. Nothing waits under it.
    std::mutex launching;

  private:
    std::shared_ptr<KnownQueue> remember(hipcl::Queue handle, cl_command_queue raw) {
        auto queue = std::make_shared<KnownQueue>(std::move(handle), raw);
        const std::lock_guard<std::mutex> lock(mutex_);
        queues_.erase(std::remove_if(queues_.begin(), queues_.end(), [](const auto &weak) { return weak.expired(); }),
                      queues_.end());
        queues_.push_back(queue);
        return queue;
    }

    hipcl_route best_route_ = HIPCL_ROUTE_AUTO;
    std::atomic<std::uint64_t> input_{0}, result_{0}, data_set_{0};
    std::mutex mutex_;
    std::vector<std::weak_ptr<KnownQueue>> queues_;
    std::map<cl_mem, std::weak_ptr<Memory>> memories_;
    std::string deferred_;
};

// A reference to an event of OpenCL.
class Event {
  public:
    Event() noexcept = default;
    // Takes the reference over.
    Event(std::shared_ptr<Session> session, cl_event raw) noexcept : session_(std::move(session)), raw_(raw) {}
    Event(Event &&other) noexcept : session_(std::move(other.session_)), raw_(std::exchange(other.raw_, nullptr)) {}
    Event &operator=(Event &&other) noexcept {
        if (this != &other) {
            reset();
            session_ = std::move(other.session_);
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event() { reset(); }

    cl_event get() const noexcept { return raw_; }
    // The reference, which is the caller's from now on.
    cl_event release() noexcept { return std::exchange(raw_, nullptr); }
    Event share() const {
        if (raw_ == nullptr) return Event();
        CheckCLError(session_->cl.RetainEvent(raw_), "clRetainEvent");
        return Event(session_, raw_);
    }
    void wait() const {
        if (raw_ != nullptr) CheckCLError(session_->cl.WaitForEvents(1, &raw_), "clWaitForEvents");
    }

  private:
    void reset() noexcept {
        if (raw_ != nullptr) (void)session_->cl.ReleaseEvent(std::exchange(raw_, nullptr));
    }
    std::shared_ptr<Session> session_;
    cl_event raw_ = nullptr;
};

// A buffer of hipcl, and whether OpenCL or hipcl has it.
class Memory : public std::enable_shared_from_this<Memory> {
  public:
    Memory(std::shared_ptr<Session> session, std::shared_ptr<KnownQueue> queue, hipcl::Buffer buffer,
           hipcl_access_mode mode, MemoryType type)
        : session_(std::move(session)), queue_(std::move(queue)), buffer_(std::move(buffer)), mode_(mode),
          kernels_write_(type != MemoryType::GPU_READ_ONLY), info_(buffer_.info()) {}
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() {
        try {
            to_hipcl();
        } catch (const std::exception &error) {
            // A device may still use the memory, so it is not freed.
            session_->defer(std::string("a buffer was destroyed and its memory is kept: ") + error.what());
            session_->keep(std::move(buffer_), std::move(access_));
        }
        if (object_ != nullptr) session_->forget(object_);
    }

    std::size_t bytes() const noexcept { return info_.bytes; }
    hipcl_route route() const noexcept { return info_.route; }
    const std::shared_ptr<Session> &session() const noexcept { return session_; }
    cl_command_queue queue() const noexcept { return queue_->raw; }
    bool kernels_write() const noexcept { return kernels_write_; }
    bool is_mapped() const noexcept { return is_mapped_; }

    // OpenCL's object. The memory is OpenCL's from here on.
    cl_mem object() {
        to_opencl();
        if (object_ == nullptr) {
            throw OpenCLError("the memory has no cl_mem on its route; use GetSVMPointer() or SetAsKernelArg()");
        }
        return object_;
    }
    // OpenCL's pointer; null where it has only an object.
    void *pointer() {
        to_opencl();
        return pointer_;
    }
    void set_argument(cl_kernel kernel, cl_uint index) {
        not_null(kernel, "the kernel");
        to_opencl();
        const std::lock_guard<std::mutex> lock(session_->launching);
        // The object where there is one: no kernel then sees both kinds, which NVIDIA refuses.
        if (object_ != nullptr) {
            CheckCLError(session_->cl.SetKernelArg(kernel, index, sizeof object_, &object_), "clSetKernelArg");
        } else {
            CheckCLError(session_->cl.SetKernelArgSVMPointer(kernel, index, pointer_), "clSetKernelArgSVMPointer");
        }
    }

    // hipcl's object. The memory is hipcl's from here on.
    hipcl::Buffer &shared() {
        if (is_mapped_) throw OpenCLError("GetSharedBuffer: the buffer is mapped; call Unmap() first");
        to_hipcl();
        return buffer_;
    }

    // Enqueues a transfer, in the order of the calls. The bytes stay where they are until the event is complete.
    Event write(std::size_t offset, const void *data, std::size_t size) {
        const char *const operation = "Write";
        check_range(offset, size, data, operation);
        if (mode_ != HIPCL_ACCESS_WRITE) throw OpenCLError("Write: the owner made the buffer read-only (CL_MEM_READ_ONLY)");
        to_opencl();
        Event event = enqueued(operation, true, [&](cl_uint count, const cl_event *waits, cl_event *made) {
            if (pointer_ == nullptr) {
                return session_->cl.EnqueueWriteBuffer(queue(), object_, 0, offset, size, data, count, waits, made);
            }
            return session_->cl.EnqueueSVMMemcpy(queue(), 0, static_cast<char *>(pointer_) + offset, data, size, count,
                                                 waits, made);
        });
        session_->count_input(size);
        return event;
    }
    Event read(std::size_t offset, void *data, std::size_t size) {
        const char *const operation = "Read";
        check_range(offset, size, data, operation);
        to_opencl();
        Event event = enqueued(operation, false, [&](cl_uint count, const cl_event *waits, cl_event *made) {
            if (pointer_ == nullptr) {
                return session_->cl.EnqueueReadBuffer(queue(), object_, 0, offset, size, data, count, waits, made);
            }
            return session_->cl.EnqueueSVMMemcpy(queue(), 0, data, static_cast<const char *>(pointer_) + offset, size,
                                                 count, waits, made);
        });
        session_->count_result(size);
        return event;
    }

    // Lets the host use the pointer. On a GPU with its own memory this moves the bytes, and counts.
    void map(bool write, bool read) {
        if (is_mapped_) return;
        to_opencl();
        if (pointer_ == nullptr) throw OpenCLError("Map: OpenCL has no pointer on this route; use Write() and Read()");
        const cl_map_flags flags = (write ? MAP_WRITE : 0) | (read ? MAP_READ : 0);
        enqueued("Map", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMMap(queue(), 0, flags, pointer_, bytes(), count, waits, event);
        }).wait();
        if (read) session_->count_result(bytes());
        is_mapped_ = true;
        is_written_ = write;
    }
    void unmap() {
        if (!is_mapped_) return;
        enqueued("Unmap", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMUnmap(queue(), pointer_, count, waits, event);
        }).wait();
        if (is_written_) session_->count_input(bytes());
        is_mapped_ = false;
    }

    // What a command waits for, in the order of the calls: a reader for the last writer, a writer also for all readers since.
    // The caller holds `launching`, from here until it has recorded the command.
    void add_waits(bool writes, std::vector<cl_event> &waits) const {
        if (writer_.get() != nullptr) waits.push_back(writer_.get());
        if (!writes) return;
        for (const auto &reader : readers_) waits.push_back(reader.second.get());
    }
    void record(bool writes, cl_command_queue queue, const Event &event) {
        if (writes) {
            readers_.clear();
            writer_ = event.share();
        } else {
            // Queues are in order, so the last of each is enough.
            readers_[queue] = event.share();
        }
    }
    // For the commands of this header on the memory.
    void finish() {
        std::vector<Event> events;
        {
            const std::lock_guard<std::mutex> lock(session_->launching);
            events.push_back(writer_.share());
            for (const auto &reader : readers_) events.push_back(reader.second.share());
        }
        for (const Event &event : events) event.wait();
    }

  private:
    void to_opencl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (access_) return;
        hipcl::Access access = buffer_.begin(session_->lending, mode_);
        // Earlier work of HIP is done then, so that every queue may use the memory.
        session_->lending.finish();
        const cl_mem object = optional<cl_mem>(access, hipcl_access_cl_mem);
        pointer_ = optional<void *>(access, hipcl_access_pointer);
        if (object != nullptr && object != object_) session_->remember(object, shared_from_this());
        object_ = object;
        access_ = std::move(access);
    }

    void to_hipcl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (!access_) return;
        session_->finish_all();
        {
            const std::lock_guard<std::mutex> order(session_->launching);
            writer_ = Event();
            readers_.clear();
        }
        access_.end();
    }

    // What an access has only on some routes.
    template <class T> static T optional(const hipcl::Access &access, hipcl_status (*get)(hipcl_access, T *)) {
        T value = nullptr;
        const hipcl_status status = get(access.get(), &value);
        if (status != HIPCL_SUCCESS && status != HIPCL_ERROR_NOT_SUPPORTED) throw hipcl::Error::last(status);
        return value;
    }

    void check_range(std::size_t offset, std::size_t size, const void *data, const char *operation) const {
        not_null(data, operation);
        if (offset > bytes() || size > bytes() - offset) {
            throw OpenCLError(std::string(operation) + ": bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + size) + " of a buffer of " + std::to_string(bytes()) + " bytes");
        }
        if (is_mapped_) throw OpenCLError(std::string(operation) + ": the buffer is mapped; call Unmap() first");
        if (info_.route == HIPCL_ROUTE_HIP_POINTER || info_.route == HIPCL_ROUTE_MANAGED) {
            throw OpenCLError(std::string(operation) + ": the memory is HIP's, which OpenCL's copies do not know; use "
                              "GetSharedBuffer().upload_at() and download_at()");
        }
    }

    // Enqueues behind the commands that it conflicts with, and records it.
    template <class Enqueue> Event enqueued(const char *operation, bool writes, Enqueue enqueue) {
        const std::lock_guard<std::mutex> lock(session_->launching);
        std::vector<cl_event> waits;
        add_waits(writes, waits);
        // And behind what the program has enqueued itself.
        std::vector<Event> marks;
        for (const auto &other : session_->queues()) {
            if (!other->is_given || other->raw == queue()) continue;
            cl_event mark = nullptr;
            CheckCLError(session_->cl.EnqueueMarkerWithWaitList(other->raw, 0, nullptr, &mark), "clEnqueueMarkerWithWaitList");
            marks.emplace_back(session_, mark);
            waits.push_back(mark);
            CheckCLError(session_->cl.Flush(other->raw), "clFlush");
        }
        cl_event raw = nullptr;
        const cl_event *const list = waits.empty() ? nullptr : waits.data();
        CheckCLError(enqueue(static_cast<cl_uint>(waits.size()), list, &raw), operation);
        Event event(session_, raw);
        record(writes, queue(), event);
        // A command on another queue may wait for it.
        CheckCLError(session_->cl.Flush(queue()), "clFlush");
        return event;
    }

    std::shared_ptr<Session> session_;
    std::shared_ptr<KnownQueue> queue_;
    hipcl::Buffer buffer_;
    hipcl_access_mode mode_;
    bool kernels_write_;
    hipcl_buffer_info info_;
    // Who has the memory.
    std::mutex lending_;
    hipcl::Access access_;
    cl_mem object_ = nullptr;
    void *pointer_ = nullptr;
    bool is_mapped_ = false;
    bool is_written_ = false;
    // In the order of the calls. Guarded by `launching`.
    Event writer_;
    std::map<cl_command_queue, Event> readers_;
};

// What is one in a process.
struct Process {
    std::mutex mutex;
    std::shared_ptr<Session> session;
    DeviceType type = DeviceType::GPU;
    // Contexts of others, by ExternalContextManager.
    std::map<cl_context, std::shared_ptr<Session>> others;
};

// Never destroyed: at the end of the process the drivers may be gone before it.
inline Process &process() {
    static Process *const one = new Process;
    return *one;
}

inline std::shared_ptr<Session> session_if_open() {
    const std::lock_guard<std::mutex> lock(process().mutex);
    return process().session;
}

inline std::shared_ptr<Session> session() {
    auto open = session_if_open();
    if (!open) throw OpenCLError("OpenCL is not initialised; call OpenCLComputeEngine::Initialize() first");
    return open;
}

// The session of a context, if it is this program's own or registered.
inline std::shared_ptr<Session> session_of(cl_context context) {
    not_null(context, "the context");
    const std::lock_guard<std::mutex> lock(process().mutex);
    if (process().session && process().session->native.context == context) return process().session;
    const auto found = process().others.find(context);
    if (found != process().others.end()) return found->second;
    throw OpenCLError("the context is not this program's own: pass it to ExternalContextManager::RegisterExternalContext() "
                      "or OpenCLCore::InitializeFromContext(), or copy with BufferBridge::CopyBetweenContexts()");
}

inline cl_context context_of(const OpenCL &cl, cl_mem buffer) {
    not_null(buffer, "the buffer");
    return queried<cl_context>(cl.GetMemObjectInfo, buffer, MEM_CONTEXT, "clGetMemObjectInfo(CL_MEM_CONTEXT)");
}

inline std::string device_text(const Session &session, cl_uint what) {
    const cl_device_id device = session.native.device;
    std::size_t bytes = 0;
    CheckCLError(session.cl.GetDeviceInfo(device, what, 0, nullptr, &bytes), "clGetDeviceInfo");
    std::string text(bytes, '\0');
    if (bytes != 0) CheckCLError(session.cl.GetDeviceInfo(device, what, bytes, &text[0], nullptr), "clGetDeviceInfo");
    const std::size_t end = text.find('\0');
    return end == std::string::npos ? text : text.substr(0, end);
}

template <class T> T device_value(const Session &session, cl_uint what) {
    return queried<T>(session.cl.GetDeviceInfo, session.native.device, what, "clGetDeviceInfo");
}

// A launch behind the last commands on its buffers.
inline Event launched(const std::shared_ptr<Session> &session, cl_command_queue queue, cl_kernel kernel,
                      const std::vector<cl_mem> &buffers, const std::array<std::size_t, 3> &global,
                      const std::array<std::size_t, 3> &local) {
    not_null(kernel, "the kernel");
    std::vector<cl_mem> objects;
    std::vector<std::shared_ptr<Memory>> memories;
    for (const cl_mem buffer : buffers) {
        not_null(buffer, "a buffer of the launch");
        auto memory = session->memory_of(buffer);
        objects.push_back(memory ? memory->object() : buffer);
        if (!memory) continue;
        if (memory->is_mapped()) throw OpenCLError("a buffer of the launch is mapped; call Unmap() first");
        memories.push_back(std::move(memory));
    }
    cl_uint dimensions = 3;
    while (dimensions > 1 && global[dimensions - 1] <= 1) dimensions--;
    if (global[0] == 0) throw std::invalid_argument("the launch has 0 work-items");
    const std::size_t *const groups = local[0] == 0 ? nullptr : local.data();

    const std::lock_guard<std::mutex> lock(session->launching);
    for (std::size_t i = 0; i < objects.size(); i++) {
        CheckCLError(session->cl.SetKernelArg(kernel, static_cast<cl_uint>(i), sizeof(cl_mem), &objects[i]),
                     "clSetKernelArg(" + std::to_string(i) + ")");
    }
    std::vector<cl_event> waits;
    for (const auto &memory : memories) memory->add_waits(memory->kernels_write(), waits);
    cl_event raw = nullptr;
    CheckCLError(session->cl.EnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, global.data(), groups,
                                                  static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(),
                                                  &raw),
                 "clEnqueueNDRangeKernel");
    Event event(session, raw);
    for (const auto &memory : memories) memory->record(memory->kernels_write(), queue, event);
    CheckCLError(session->cl.Flush(queue), "clFlush");
    return event;
}

} // namespace detail

// What OpenCL says about shared virtual memory.
struct SVMCapabilities {
    bool coarse_grain_buffer = false;
    bool fine_grain_buffer = false;
    bool fine_grain_system = false;
    bool atomics = false;
    cl_uint opencl_major_version = 0;
    cl_uint opencl_minor_version = 0;
    bool svm_supported = false;

    // The device is one of this program's own or of a registered context.
    static SVMCapabilities Query(cl_device_id device) {
        detail::not_null(device, "the device");
        const auto session = detail::session();
        const detail::OpenCL &cl = session->cl;
        SVMCapabilities found;
        char version[128] = {};
        CheckCLError(cl.GetDeviceInfo(device, detail::DEVICE_VERSION, sizeof version - 1, version, nullptr),
                     "clGetDeviceInfo(CL_DEVICE_VERSION)");
        char dot = 0;
        std::string word;
        std::istringstream text(version);
        text >> word >> found.opencl_major_version >> dot >> found.opencl_minor_version;
        cl_bitfield kinds = 0;
        // A device of OpenCL 1.2 does not know the query.
        if (cl.GetDeviceInfo(device, detail::DEVICE_SVM_CAPABILITIES, sizeof kinds, &kinds, nullptr) == CL_SUCCESS) {
            found.coarse_grain_buffer = (kinds & 1) != 0;
            found.fine_grain_buffer = (kinds & 2) != 0;
            found.fine_grain_system = (kinds & 4) != 0;
            found.atomics = (kinds & 8) != 0;
            found.svm_supported = kinds != 0;
        }
        return found;
    }

    bool HasAnySVM() const { return coarse_grain_buffer || fine_grain_buffer || fine_grain_system; }
    // Coarse-grain memory is device memory; the other kinds are host memory on a GPU with its own.
    MemoryStrategy GetBestSVMStrategy() const {
        if (coarse_grain_buffer) return MemoryStrategy::SVM_COARSE_GRAIN;
        if (fine_grain_buffer) return MemoryStrategy::SVM_FINE_GRAIN;
        return MemoryStrategy::REGULAR_BUFFER;
    }
    MemoryStrategy RecommendStrategy(std::size_t) const { return GetBestSVMStrategy(); }

    std::string ToString() const {
        std::ostringstream text;
        const auto line = [&](const char *name, bool is) { text << name << ": " << (is ? "yes" : "no") << "\n"; };
        text << "OpenCL version: " << opencl_major_version << "." << opencl_minor_version << "\n";
        line("coarse-grain buffers", coarse_grain_buffer);
        line("fine-grain buffers", fine_grain_buffer);
        line("fine-grain system", fine_grain_system);
        line("atomics", atomics);
        return text.str();
    }
};

inline bool IsSVMSupported(cl_device_id device) { return SVMCapabilities::Query(device).HasAnySVM(); }
inline MemoryStrategy GetRecommendedStrategy(cl_device_id device) {
    return SVMCapabilities::Query(device).GetBestSVMStrategy();
}

// The device and its context.
class OpenCLCore {
  public:
    // Opens the bridge. Once it is open, a second call with the same type does nothing.
    static void Initialize(DeviceType device_type = DeviceType::GPU) {
        detail::Process &process = detail::process();
        const std::lock_guard<std::mutex> lock(process.mutex);
        if (process.session) {
            if (process.type == device_type) return;
            throw OpenCLError("OpenCL is initialised for another device type; call Cleanup() first");
        }
        process.session = detail::Session::open(device_type);
        process.type = device_type;
    }
    // On objects of the program's own: a context of one device, that device, and an in-order queue.
    static void InitializeFromContext(cl_context context, cl_device_id device, cl_command_queue queue) {
        detail::Process &process = detail::process();
        const std::lock_guard<std::mutex> lock(process.mutex);
        if (process.session) throw OpenCLError("OpenCL is initialised already; call Cleanup() first");
        process.session = detail::Session::adopt(context, device, queue);
        process.type = DeviceType::GPU;
    }
    static bool IsInitialized() { return detail::session_if_open() != nullptr; }
    static OpenCLCore &GetInstance() {
        (void)detail::session();
        static OpenCLCore core;
        return core;
    }
    static inline void Cleanup();

    OpenCLCore(const OpenCLCore &) = delete;
    OpenCLCore &operator=(const OpenCLCore &) = delete;

    cl_context GetContext() const { return detail::session()->native.context; }
    cl_device_id GetDevice() const { return detail::session()->native.device; }
    cl_platform_id GetPlatform() const { return detail::session()->native.platform; }

    std::string GetDeviceName() const { return detail::device_text(*detail::session(), detail::DEVICE_NAME); }
    std::string GetVendor() const { return detail::device_text(*detail::session(), detail::DEVICE_VENDOR); }
    std::string GetDriverVersion() const { return detail::device_text(*detail::session(), detail::DRIVER_VERSION); }
    std::size_t GetGlobalMemorySize() const {
        return detail::device_value<cl_ulong>(*detail::session(), detail::DEVICE_GLOBAL_MEM_SIZE);
    }
    std::size_t GetLocalMemorySize() const {
        return detail::device_value<cl_ulong>(*detail::session(), detail::DEVICE_LOCAL_MEM_SIZE);
    }
    cl_uint GetComputeUnits() const {
        return detail::device_value<cl_uint>(*detail::session(), detail::DEVICE_MAX_COMPUTE_UNITS);
    }
    std::size_t GetMaxWorkGroupSize() const {
        return detail::device_value<std::size_t>(*detail::session(), detail::DEVICE_MAX_WORK_GROUP_SIZE);
    }
    std::array<std::size_t, 3> GetMaxWorkItemSizes() const {
        return detail::device_value<std::array<std::size_t, 3>>(*detail::session(), detail::DEVICE_MAX_WORK_ITEM_SIZES);
    }
    SVMCapabilities GetSVMCapabilities() const { return SVMCapabilities::Query(GetDevice()); }
    cl_uint GetOpenCLVersionMajor() const { return GetSVMCapabilities().opencl_major_version; }
    cl_uint GetOpenCLVersionMinor() const { return GetSVMCapabilities().opencl_minor_version; }
    bool IsSVMSupported() const { return GetSVMCapabilities().HasAnySVM(); }
    std::string GetSVMInfo() const { return GetSVMCapabilities().ToString(); }
    // The devices of both APIs, and how memory is shared.
    std::string GetDeviceInfo() const { return detail::session()->bridge.report(); }

  private:
    OpenCLCore() = default;
};

// In-order queues that are given out in turn.
class CommandQueuePool {
  public:
    // 0 is as many as ROCm runs side by side. Once there is a pool, a second call does nothing.
    static void Initialize(std::size_t num_queues = 0) {
        const auto session = detail::session();
        Pool &pool = one();
        const std::lock_guard<std::mutex> lock(pool.mutex);
        if (!pool.queues.empty()) return;
        std::vector<std::shared_ptr<detail::KnownQueue>> queues;
        for (std::size_t i = 0; i < (num_queues == 0 ? 4 : num_queues); i++) queues.push_back(session->new_queue());
        pool.usage.assign(queues.size(), 0);
        pool.queues = std::move(queues);
        pool.given = 0;
    }
    static bool IsInitialized() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        return !one().queues.empty();
    }
    static void Cleanup() {
        std::vector<std::shared_ptr<detail::KnownQueue>> queues;
        {
            const std::lock_guard<std::mutex> lock(one().mutex);
            queues.swap(one().queues);
        }
        for (const auto &queue : queues) queue->handle.finish();
    }

    static cl_command_queue GetNextQueue() { return use(next, true); }
    static cl_command_queue GetQueue(std::size_t index) {
        return use([&](Pool &pool) {
            if (index >= pool.queues.size()) {
                throw std::invalid_argument("GetQueue(" + std::to_string(index) + "): the pool has " +
                                            std::to_string(pool.queues.size()) + " queues");
            }
            return index;
        });
    }
    static cl_command_queue GetRandomQueue() {
        return use([](Pool &pool) { return pool.random() % pool.queues.size(); });
    }
    // The one that GetNextQueue() gave last.
    static cl_command_queue GetCurrentQueue() {
        return use([](Pool &pool) { return current(pool); });
    }

    static void FinishAll() {
        for (const auto &queue : all()) queue->handle.finish();
    }
    static void FinishQueue(std::size_t index) { finish(GetQueue(index)); }
    static void FlushAll() {
        const auto session = detail::session();
        for (const auto &queue : all()) CheckCLError(session->cl.Flush(queue->raw), "clFlush");
    }

    static std::size_t GetPoolSize() { return all().size(); }
    static std::size_t GetCurrentQueueIndex() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        return current(one());
    }
    static std::string GetStatistics() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        std::ostringstream text;
        text << one().queues.size() << " queues\n";
        for (std::size_t i = 0; i < one().queues.size(); i++) text << "  queue " << i << ": given " << one().usage[i] << " times\n";
        return text.str();
    }

  private:
    friend class OpenCLComputeEngine;
    struct Pool {
        std::mutex mutex;
        std::vector<std::shared_ptr<detail::KnownQueue>> queues;
        std::vector<std::size_t> usage;
        std::size_t given = 0;
        std::minstd_rand random;
    };
    static Pool &one() {
        static Pool *const pool = new Pool;
        return *pool;
    }
    static std::size_t current(const Pool &pool) {
        return pool.queues.empty() || pool.given == 0 ? 0 : (pool.given - 1) % pool.queues.size();
    }
    static std::size_t next(Pool &pool) { return pool.given++ % pool.queues.size(); }
    // For commands of this header.
    static cl_command_queue own_next() { return use(next, false); }
    template <class Choose> static cl_command_queue use(Choose choose, bool is_given = true) {
        Pool &pool = one();
        const std::lock_guard<std::mutex> lock(pool.mutex);
        if (pool.queues.empty()) throw OpenCLError("the queue pool is empty; call CommandQueuePool::Initialize() first");
        const std::size_t index = choose(pool);
        pool.usage[index]++;
        if (is_given) pool.queues[index]->is_given = true;
        return pool.queues[index]->raw;
    }
    static std::vector<std::shared_ptr<detail::KnownQueue>> all() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        return one().queues;
    }
    static void finish(cl_command_queue queue) {
        CheckCLError(detail::session()->cl.Finish(queue), "clFinish");
    }
};

// What OpenCL says about a cl_mem.
struct ExternalBufferInfo {
    // In complex numbers of 8 bytes.
    std::size_t num_elements = 0;
    std::size_t size_bytes = 0;
    cl_mem_flags flags = 0;
    cl_mem_object_type type = 0;
    // Not retained: it lives as long as the buffer.
    cl_context context = nullptr;
    // The context's first device.
    cl_device_id device = nullptr;
    void *host_ptr = nullptr;
    // Whether the buffer is a view of shared virtual memory, at host_ptr.
    bool is_svm_compatible = false;

    static ExternalBufferInfo Query(cl_mem buffer) {
        detail::not_null(buffer, "the buffer");
        const auto session = detail::session();
        const detail::OpenCL &cl = session->cl;
        ExternalBufferInfo info;
        info.type = of<cl_mem_object_type>(cl, buffer, detail::MEM_TYPE, "clGetMemObjectInfo(CL_MEM_TYPE)");
        if (!info.IsBuffer()) throw OpenCLError("the cl_mem is an image or a pipe; pass a buffer");
        info.size_bytes = of<std::size_t>(cl, buffer, detail::MEM_SIZE, "clGetMemObjectInfo(CL_MEM_SIZE)");
        info.num_elements = info.size_bytes / sizeof(ComplexFloat);
        info.flags = of<cl_mem_flags>(cl, buffer, detail::MEM_FLAGS, "clGetMemObjectInfo(CL_MEM_FLAGS)");
        info.context = detail::context_of(cl, buffer);
        info.host_ptr = of<void *>(cl, buffer, detail::MEM_HOST_PTR, "clGetMemObjectInfo(CL_MEM_HOST_PTR)");
        info.device = first_device(cl, info.context);
        cl_bool is_view = 0;
        // A device of OpenCL 1.2 does not know the query.
        if (cl.GetMemObjectInfo(buffer, detail::MEM_USES_SVM_POINTER, sizeof is_view, &is_view, nullptr) == CL_SUCCESS) {
            info.is_svm_compatible = is_view != 0;
        }
        return info;
    }

    bool IsReadable() const { return (flags & CL_MEM_WRITE_ONLY) == 0; }
    bool IsWritable() const { return (flags & CL_MEM_READ_ONLY) == 0; }
    bool IsReadWrite() const { return IsReadable() && IsWritable(); }
    bool IsBuffer() const { return type == detail::MEM_OBJECT_BUFFER; }
    bool HasHostPtr() const { return host_ptr != nullptr; }

  private:
    template <class T> static T of(const detail::OpenCL &cl, cl_mem buffer, cl_uint what, const char *operation) {
        return detail::queried<T>(cl.GetMemObjectInfo, buffer, what, operation);
    }
    static cl_device_id first_device(const detail::OpenCL &cl, cl_context context) {
        std::size_t bytes = 0;
        const char *const operation = "clGetContextInfo(CL_CONTEXT_DEVICES)";
        CheckCLError(cl.GetContextInfo(context, detail::CONTEXT_DEVICES, 0, nullptr, &bytes), operation);
        std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
        CheckCLError(cl.GetContextInfo(context, detail::CONTEXT_DEVICES, bytes, devices.data(), nullptr), operation);
        return devices.empty() ? nullptr : devices.front();
    }
};

struct BufferInfo {
    std::size_t num_elements = 0;
    std::size_t size_bytes = 0;
    MemoryType memory_type = MemoryType::GPU_READ_WRITE;
    MemoryStrategy strategy = MemoryStrategy::REGULAR_BUFFER;
    bool is_external = false;
    bool is_mapped = false;

    std::string ToString() const {
        std::ostringstream text;
        text << MemoryStrategyToString(strategy) << ": " << num_elements << " elements, " << size_bytes << " bytes"
             << (is_external ? ", external" : "") << (is_mapped ? ", mapped" : "");
        return text.str();
    }
};

namespace detail {

inline std::shared_ptr<Memory> allocated(cl_context context, cl_command_queue queue, std::size_t bytes, hipcl_route route,
                                         MemoryType type) {
    auto session = session_of(context);
    auto known = session->known(queue);
    hipcl::Buffer buffer = session->bridge.alloc<unsigned char>(bytes, route);
    return std::make_shared<Memory>(std::move(session), std::move(known), std::move(buffer), HIPCL_ACCESS_WRITE, type);
}

// Memory of another owner, in place. The context may be null: then it is the buffer's own.
inline std::shared_ptr<Memory> adopted(cl_context context, cl_command_queue queue, cl_mem external, std::size_t bytes,
                                       MemoryType type) {
    const ExternalBufferInfo info = ExternalBufferInfo::Query(external);
    if (context != nullptr && context != info.context) {
        throw OpenCLError("the external buffer belongs to another context than the one that was passed with it");
    }
    if (bytes > info.size_bytes) {
        throw OpenCLError("the external buffer has " + std::to_string(info.size_bytes) + " bytes, fewer than the " +
                          std::to_string(bytes) + " that are asked for");
    }
    if (!info.IsWritable() && type != MemoryType::GPU_READ_ONLY) {
        throw OpenCLError("the owner made the external buffer read-only (CL_MEM_READ_ONLY); wrap it as GPU_READ_ONLY");
    }
    auto session = session_of(info.context);
    // A cl_mem of this header is no other owner's: both are one memory.
    if (auto own = session->memory_of(external)) return own;
    auto known = queue == nullptr ? session->main : session->known(queue);
    hipcl::Buffer buffer = session->bridge.adopt(external);
    const hipcl_access_mode mode = info.IsWritable() ? HIPCL_ACCESS_WRITE : HIPCL_ACCESS_READ;
    return std::make_shared<Memory>(std::move(session), std::move(known), std::move(buffer), mode, type);
}

inline hipcl_route route_of(MemoryStrategy strategy) {
    switch (strategy) {
    case MemoryStrategy::SVM_COARSE_GRAIN: return HIPCL_ROUTE_SVM_COARSE;
    case MemoryStrategy::SVM_FINE_GRAIN: return HIPCL_ROUTE_SVM_FINE;
    case MemoryStrategy::SVM_FINE_SYSTEM:
        throw OpenCLError("SVM_FINE_SYSTEM: HIP does not use plain host memory in place; use SVM_FINE_GRAIN for memory that "
                          "the host reads and writes, or SVM_COARSE_GRAIN");
    case MemoryStrategy::REGULAR_BUFFER:
    case MemoryStrategy::AUTO: break;
    }
    return HIPCL_ROUTE_AUTO;
}

} // namespace detail

// A buffer, whatever its memory.
class IMemoryBuffer {
  public:
    virtual ~IMemoryBuffer() = default;
    IMemoryBuffer(const IMemoryBuffer &) = delete;
    IMemoryBuffer &operator=(const IMemoryBuffer &) = delete;

    // Elements are complex numbers of 8 bytes. The host's data may be shorter than the buffer: it goes to the beginning.
    virtual void Write(const ComplexVector &data) = 0;
    virtual void WriteRaw(const void *data, std::size_t size_bytes) = 0;
    virtual ComplexVector Read() = 0;
    virtual ComplexVector ReadPartial(std::size_t num_elements) = 0;
    virtual void ReadRaw(void *dest, std::size_t size_bytes) = 0;

    // The vector stays as it is until the event is complete. The caller releases the event: with clReleaseEvent() or
    // OpenCLComputeEngine::ReleaseEvent().
    virtual cl_event WriteAsync(const ComplexVector &data) = 0;
    cl_event WriteAsync(ComplexVector &&) = delete; // a temporary is gone before the transfer is done
    virtual cl_event ReadAsync(ComplexVector &out_data) = 0;

    // OpenCL's object. It belongs to the buffer.
    virtual cl_mem GetCLMem() const = 0;
    // OpenCL's pointer; null where it has only an object.
    virtual void *GetSVMPointer() const = 0;
    virtual void SetAsKernelArg(cl_kernel kernel, cl_uint arg_index) = 0;

    virtual std::size_t GetNumElements() const = 0;
    virtual std::size_t GetSizeBytes() const = 0;
    virtual MemoryType GetMemoryType() const = 0;
    virtual MemoryStrategy GetStrategy() const = 0;
    virtual bool IsExternal() const = 0;
    virtual bool IsSVM() const = 0;
    virtual BufferInfo GetInfo() const = 0;
    virtual void PrintStats() const = 0;

    // Lets the host use GetSVMPointer() until Unmap(). Other buffers than SVM buffers do nothing here.
    virtual void Map(bool write = true, bool read = true) = 0;
    virtual void Unmap() = 0;
    virtual bool IsMapped() const = 0;

    // The memory for HIP and its libraries, after all OpenCL commands on it. It is hipcl's until the next call here.
    virtual hipcl::Buffer &GetSharedBuffer() {
        throw OpenCLError("GetSharedBuffer: this class has no memory that hipcl knows");
    }

  protected:
    IMemoryBuffer() = default;
    IMemoryBuffer(IMemoryBuffer &&) noexcept = default;
    IMemoryBuffer &operator=(IMemoryBuffer &&) noexcept = default;
};

namespace detail {

// What the kinds of buffers have in common.
class SharedMemoryBuffer : public IMemoryBuffer {
  public:
    void Write(const ComplexVector &data) override { WriteRaw(data.data(), data.size() * sizeof(ComplexFloat)); }
    void WriteRaw(const void *data, std::size_t size_bytes) override {
        if (size_bytes != 0) within(size_bytes).write(0, data, size_bytes).wait();
    }
    ComplexVector Read() override { return ReadPartial(num_elements_); }
    ComplexVector ReadPartial(std::size_t num_elements) override {
        if (num_elements > num_elements_) throw too_many(num_elements);
        ComplexVector data(num_elements);
        ReadRaw(data.data(), num_elements * sizeof(ComplexFloat));
        return data;
    }
    void ReadRaw(void *dest, std::size_t size_bytes) override {
        if (size_bytes != 0) within(size_bytes).read(0, dest, size_bytes).wait();
    }
    cl_event WriteAsync(const ComplexVector &data) override {
        const std::size_t bytes = data.size() * sizeof(ComplexFloat);
        return within(bytes).write(0, data.data(), bytes).release();
    }
    cl_event WriteAsync(ComplexVector &&) = delete;
    cl_event ReadAsync(ComplexVector &out_data) override {
        out_data.resize(num_elements_);
        return memory_->read(0, out_data.data(), GetSizeBytes()).release();
    }

    cl_mem GetCLMem() const override { return memory_->object(); }
    void *GetSVMPointer() const override { return memory_->pointer(); }
    void SetAsKernelArg(cl_kernel kernel, cl_uint arg_index) override { memory_->set_argument(kernel, arg_index); }

    std::size_t GetNumElements() const override { return num_elements_; }
    std::size_t GetSizeBytes() const override { return num_elements_ * sizeof(ComplexFloat); }
    MemoryType GetMemoryType() const override { return type_; }
    MemoryStrategy GetStrategy() const override { return strategy_; }
    bool IsExternal() const override { return is_external_; }
    bool IsSVM() const override { return strategy_ != MemoryStrategy::REGULAR_BUFFER; }
    BufferInfo GetInfo() const override {
        BufferInfo info;
        info.num_elements = num_elements_;
        info.size_bytes = GetSizeBytes();
        info.memory_type = type_;
        info.strategy = strategy_;
        info.is_external = is_external_;
        info.is_mapped = IsMapped();
        return info;
    }
    void PrintStats() const override { std::cout << GetInfo().ToString() << "\n"; }

    void Map(bool write = true, bool read = true) override {
        if (IsSVM()) memory_->map(write, read);
    }
    void Unmap() override { memory_->unmap(); }
    bool IsMapped() const override { return memory_->is_mapped(); }

    hipcl::Buffer &GetSharedBuffer() override { return memory_->shared(); }

  protected:
    SharedMemoryBuffer(std::shared_ptr<Memory> memory, std::size_t num_elements, MemoryType type, MemoryStrategy strategy,
                       bool is_external)
        : memory_(std::move(memory)), num_elements_(num_elements), type_(type), strategy_(strategy),
          is_external_(is_external) {}

  private:
    Memory &within(std::size_t bytes) const {
        if (bytes > GetSizeBytes()) {
            throw OpenCLError(std::to_string(bytes) + " bytes do not fit a buffer of " + std::to_string(GetSizeBytes()) +
                              " bytes");
        }
        return *memory_;
    }
    OpenCLError too_many(std::size_t num_elements) const {
        return OpenCLError(std::to_string(num_elements) + " elements are asked of a buffer of " +
                           std::to_string(num_elements_) + " elements");
    }

    std::shared_ptr<Memory> memory_;
    std::size_t num_elements_;
    MemoryType type_;
    MemoryStrategy strategy_;
    bool is_external_;
};

} // namespace detail

// Memory on the best route of the bridge.
class RegularBuffer : public detail::SharedMemoryBuffer {
  public:
    RegularBuffer(cl_context context, cl_command_queue queue, std::size_t num_elements,
                  MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : SharedMemoryBuffer(detail::allocated(context, queue, detail::product(num_elements, 8, "RegularBuffer"),
                                               HIPCL_ROUTE_AUTO, mem_type),
                             num_elements, mem_type, MemoryStrategy::REGULAR_BUFFER, false) {}
    RegularBuffer(cl_context context, cl_command_queue queue, const ComplexVector &initial_data,
                  MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : RegularBuffer(context, queue, initial_data.size(), mem_type) {
        Write(initial_data);
    }
    // Memory of another owner, as ExternalBuffer.
    RegularBuffer(cl_context context, cl_command_queue queue, cl_mem external_buffer, std::size_t num_elements,
                  MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : SharedMemoryBuffer(detail::adopted(context, queue, external_buffer,
                                             detail::product(num_elements, 8, "RegularBuffer"), mem_type),
                             num_elements, mem_type, MemoryStrategy::REGULAR_BUFFER, true) {}
    // The memory of a buffer of another class.
    RegularBuffer(std::shared_ptr<detail::Memory> memory, std::size_t num_elements, MemoryType mem_type, bool is_external)
        : SharedMemoryBuffer(std::move(memory), num_elements, mem_type, MemoryStrategy::REGULAR_BUFFER, is_external) {}
};

// Shared virtual memory.
class SVMBuffer : public detail::SharedMemoryBuffer {
  public:
    SVMBuffer(cl_context context, cl_command_queue queue, std::size_t num_elements,
              MemoryStrategy strategy = MemoryStrategy::SVM_COARSE_GRAIN, MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : SharedMemoryBuffer(detail::allocated(context, queue, detail::product(num_elements, 8, "SVMBuffer"),
                                               detail::route_of(svm(strategy)), mem_type),
                             num_elements, mem_type, svm(strategy), false) {}
    SVMBuffer(cl_context context, cl_command_queue queue, const ComplexVector &initial_data,
              MemoryStrategy strategy = MemoryStrategy::SVM_COARSE_GRAIN, MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : SVMBuffer(context, queue, initial_data.size(), strategy, mem_type) {
        Write(initial_data);
    }

  private:
    static MemoryStrategy svm(MemoryStrategy strategy) {
        if (strategy == MemoryStrategy::AUTO) return MemoryStrategy::SVM_COARSE_GRAIN;
        if (strategy == MemoryStrategy::REGULAR_BUFFER) {
            throw std::invalid_argument("SVMBuffer: REGULAR_BUFFER is not shared virtual memory; use RegularBuffer");
        }
        return strategy;
    }
};

// A cl_mem of another owner, used in place. It is retained as long as this lives.
class ExternalBuffer : public detail::SharedMemoryBuffer {
  public:
    // The context may be null: then it is the buffer's own. So may the queue: then it is one of that context.
    ExternalBuffer(cl_context context, cl_command_queue queue, cl_mem external_buffer, std::size_t num_elements,
                   MemoryType mem_type = MemoryType::GPU_READ_WRITE)
        : SharedMemoryBuffer(detail::adopted(context, queue, external_buffer,
                                             detail::product(num_elements, 8, "ExternalBuffer"), mem_type),
                             num_elements, mem_type, MemoryStrategy::REGULAR_BUFFER, true) {}
};

// Every buffer has one interface, whatever its memory.
using UnifiedMemoryWrapper = ExternalBuffer;

inline std::string GetBufferDescription(const IMemoryBuffer *buffer) {
    return buffer == nullptr ? "null" : buffer->GetInfo().ToString();
}

// Maps a buffer until the end of the block.
class ScopedMap {
  public:
    explicit ScopedMap(IMemoryBuffer *buffer, bool write = true, bool read = true) : buffer_(buffer) {
        if (buffer_ != nullptr) buffer_->Map(write, read);
    }
    ScopedMap(ScopedMap &&other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
    ScopedMap &operator=(ScopedMap &&other) noexcept {
        if (this != &other) {
            end();
            buffer_ = std::exchange(other.buffer_, nullptr);
        }
        return *this;
    }
    ScopedMap(const ScopedMap &) = delete;
    ScopedMap &operator=(const ScopedMap &) = delete;
    ~ScopedMap() { end(); }

  private:
    void end() noexcept {
        try {
            if (buffer_ != nullptr) buffer_->Unmap();
        } catch (const std::exception &error) {
            if (const auto session = detail::session_if_open()) session->defer(std::string("ScopedMap: ") + error.what());
        }
    }
    IMemoryBuffer *buffer_;
};

// The older class of buffers.
class GPUMemoryBuffer {
  public:
    GPUMemoryBuffer(cl_context context, cl_command_queue queue, std::size_t num_elements,
                    MemoryType type = MemoryType::GPU_WRITE_ONLY)
        : memory_(detail::allocated(context, queue, detail::product(num_elements, 8, "GPUMemoryBuffer"), HIPCL_ROUTE_AUTO,
                                    type)),
          num_elements_(num_elements), size_bytes_(num_elements * sizeof(ComplexFloat)), type_(type) {}
    // A cl_mem of another owner, used in place.
    GPUMemoryBuffer(cl_context context, cl_command_queue queue, cl_mem external_gpu_buffer, std::size_t num_elements,
                    MemoryType type = MemoryType::GPU_WRITE_ONLY)
        : memory_(detail::adopted(context, queue, external_gpu_buffer, detail::product(num_elements, 8, "GPUMemoryBuffer"),
                                  type)),
          num_elements_(num_elements), size_bytes_(num_elements * sizeof(ComplexFloat)), type_(type), is_external_(true) {}
    // Elements of any type.
    GPUMemoryBuffer(cl_context context, cl_command_queue queue, const void *host_data, std::size_t data_size_bytes,
                    std::size_t num_elements, MemoryType type = MemoryType::GPU_READ_ONLY)
        : memory_(detail::allocated(context, queue, detail::product(data_size_bytes, 1, "GPUMemoryBuffer"),
                                    HIPCL_ROUTE_AUTO, type)),
          num_elements_(num_elements), size_bytes_(data_size_bytes), type_(type) {
        memory_->write(0, host_data, data_size_bytes).wait();
    }
    GPUMemoryBuffer(GPUMemoryBuffer &&) noexcept = default;
    GPUMemoryBuffer &operator=(GPUMemoryBuffer &&) noexcept = default;
    GPUMemoryBuffer(const GPUMemoryBuffer &) = delete;
    GPUMemoryBuffer &operator=(const GPUMemoryBuffer &) = delete;

    ComplexVector ReadFromGPU() { return ReadPartial(num_elements_); }
    ComplexVector ReadPartial(std::size_t num_elements) {
        check_elements(num_elements);
        ComplexVector data(num_elements);
        if (num_elements != 0) memory_->read(0, data.data(), num_elements * sizeof(ComplexFloat)).wait();
        gpu_dirty_ = false;
        return data;
    }
    void WriteToGPU(const ComplexVector &data) {
        check_elements(data.size());
        if (!data.empty()) memory_->write(0, data.data(), data.size() * sizeof(ComplexFloat)).wait();
        gpu_dirty_ = true;
    }
    // The vector may be moved, but is not changed until the event is complete. The caller releases the event.
    std::pair<ComplexVector, cl_event> ReadFromGPUAsync() {
        check_elements(num_elements_);
        ComplexVector data(num_elements_);
        const cl_event event = memory_->read(0, data.data(), size_bytes_).release();
        return {std::move(data), event};
    }
    cl_event WriteToGPUAsync(const ComplexVector &data) {
        check_elements(data.size());
        gpu_dirty_ = true;
        return memory_->write(0, data.data(), data.size() * sizeof(ComplexFloat)).release();
    }
    cl_event WriteToGPUAsync(ComplexVector &&) = delete; // a temporary is gone before the transfer is done
    // Elements of any type.
    template <class T> std::vector<T> ReadAs() {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        if (size_bytes_ != num_elements_ * sizeof(T)) throw wrong_type(sizeof(T));
        std::vector<T> data(num_elements_);
        memory_->read(0, data.data(), size_bytes_).wait();
        return data;
    }

    std::size_t GetNumElements() const { return num_elements_; }
    std::size_t GetSizeBytes() const { return size_bytes_; }
    bool IsExternalBuffer() const { return is_external_; }
    // Whether it was written since it was read.
    bool IsGPUDirty() const { return gpu_dirty_; }
    MemoryType GetMemoryType() const { return type_; }
    // OpenCL's object. It belongs to the buffer.
    cl_mem Get() const { return memory_->object(); }
    void PrintStats() const {
        std::cout << "GPUMemoryBuffer: " << num_elements_ << " elements, " << size_bytes_ << " bytes"
                  << (is_external_ ? ", external" : "") << "\n";
    }

    // As IMemoryBuffer's.
    hipcl::Buffer &GetSharedBuffer() { return memory_->shared(); }
    // The memory as an IMemoryBuffer, beside this one.
    std::unique_ptr<IMemoryBuffer> AsMemoryBuffer() const {
        return std::make_unique<RegularBuffer>(memory_, size_bytes_ / sizeof(ComplexFloat), type_, is_external_);
    }

  private:
    void check_elements(std::size_t num_elements) const {
        if (size_bytes_ != num_elements_ * sizeof(ComplexFloat)) throw wrong_type(sizeof(ComplexFloat));
        if (num_elements > num_elements_) {
            throw OpenCLError(std::to_string(num_elements) + " elements are asked of a buffer of " +
                              std::to_string(num_elements_) + " elements");
        }
    }
    OpenCLError wrong_type(std::size_t size) const {
        return OpenCLError("the buffer has " + std::to_string(num_elements_) + " elements in " + std::to_string(size_bytes_) +
                           " bytes, not of " + std::to_string(size) + " bytes each; read it with ReadAs<T>()");
    }

    std::shared_ptr<detail::Memory> memory_;
    std::size_t num_elements_;
    std::size_t size_bytes_;
    MemoryType type_;
    bool is_external_ = false;
    bool gpu_dirty_ = false;
};

class LegacyBufferAdapter {
  public:
    // The buffer's own memory, not an object that the old class is about to release.
    static std::unique_ptr<IMemoryBuffer> FromLegacy(std::unique_ptr<GPUMemoryBuffer> legacy_buffer, cl_context,
                                                     cl_command_queue) {
        detail::not_null(legacy_buffer.get(), "the buffer");
        return legacy_buffer->AsMemoryBuffer();
    }
};

struct BufferUsageHint {
    bool frequent_host_read = false;
    bool frequent_host_write = false;
    bool gpu_only = false;
    bool requires_atomics = false;

    static BufferUsageHint Default() { return BufferUsageHint(); }
    static BufferUsageHint GPUOnly() {
        BufferUsageHint hint;
        hint.gpu_only = true;
        return hint;
    }
    static BufferUsageHint FrequentTransfer() {
        BufferUsageHint hint;
        hint.frequent_host_read = hint.frequent_host_write = true;
        return hint;
    }
};

struct BufferConfig {
    // Smaller buffers are regular ones, unless a kind is forced.
    std::size_t small_buffer_threshold = std::size_t(1) << 20;
    std::size_t large_buffer_threshold = std::size_t(64) << 20;
    bool force_svm = false;
    bool force_regular = false;
    // False with force_svm: fine-grain memory, which is host memory on a GPU with its own.
    bool prefer_coarse_grain = true;
    // Is ignored: a choice is explained by DetermineStrategy() and PrintInfo().
    bool verbose = false;

    static BufferConfig Default() { return BufferConfig(); }
    static BufferConfig Performance() {
        BufferConfig config;
        config.small_buffer_threshold = std::size_t(256) << 10;
        config.large_buffer_threshold = std::size_t(16) << 20;
        return config;
    }
    static BufferConfig Compatibility() {
        BufferConfig config;
        config.small_buffer_threshold = std::size_t(256) << 20;
        return config;
    }
    static BufferConfig SVMOnly() {
        BufferConfig config;
        config.force_svm = true;
        return config;
    }
    static BufferConfig RegularOnly() {
        BufferConfig config;
        config.force_regular = true;
        return config;
    }
};

// Makes buffers of the kind that is asked for, or chooses one by size. May be used on several threads.
class BufferFactory {
  public:
    BufferFactory(cl_context context, cl_command_queue queue, cl_device_id device,
                  const BufferConfig &config = BufferConfig::Default())
        : session_(detail::session_of(context)), queue_(session_->known(queue)), context_(context),
          capabilities_(SVMCapabilities::Query(device)), config_(config) {}

    std::unique_ptr<IMemoryBuffer> Create(std::size_t num_elements, MemoryType mem_type = MemoryType::GPU_READ_WRITE,
                                          const BufferUsageHint &hint = BufferUsageHint::Default()) {
        const std::size_t bytes = detail::product(num_elements, sizeof(ComplexFloat), "Create");
        return CreateWithStrategy(num_elements, DetermineStrategy(bytes, hint), mem_type);
    }
    // Exactly this kind, or an error.
    std::unique_ptr<IMemoryBuffer> CreateWithStrategy(std::size_t num_elements, MemoryStrategy strategy,
                                                      MemoryType mem_type = MemoryType::GPU_READ_WRITE) {
        const std::size_t bytes = detail::product(num_elements, sizeof(ComplexFloat), "CreateWithStrategy");
        if (strategy == MemoryStrategy::AUTO) strategy = DetermineStrategy(bytes);
        std::unique_ptr<IMemoryBuffer> buffer;
        if (strategy == MemoryStrategy::REGULAR_BUFFER) {
            buffer = std::make_unique<RegularBuffer>(context_, queue_->raw, num_elements, mem_type);
        } else {
            buffer = std::make_unique<SVMBuffer>(context_, queue_->raw, num_elements, strategy, mem_type);
        }
        (buffer->IsSVM() ? svm_ : regular_)++;
        bytes_ += bytes;
        return buffer;
    }
    std::unique_ptr<IMemoryBuffer> CreateWithData(const ComplexVector &data,
                                                  MemoryType mem_type = MemoryType::GPU_READ_WRITE) {
        auto buffer = Create(data.size(), mem_type);
        buffer->Write(data);
        return buffer;
    }
    // A cl_mem of another owner, used in place. A context of null is the factory's own.
    std::unique_ptr<IMemoryBuffer> WrapExternalBuffer(cl_mem external_buffer, std::size_t num_elements, MemoryType type,
                                                      cl_context external_context = nullptr) {
        const cl_context context = external_context == nullptr ? context_ : external_context;
        const cl_command_queue queue = context == context_ ? queue_->raw : nullptr;
        return std::make_unique<ExternalBuffer>(context, queue, external_buffer, num_elements, type);
    }
    std::unique_ptr<IMemoryBuffer> WrapExternal(cl_mem external_buffer, std::size_t num_elements,
                                                MemoryType mem_type = MemoryType::GPU_READ_WRITE) {
        return WrapExternalBuffer(external_buffer, num_elements, mem_type);
    }
    ExternalBufferInfo QueryExternalBuffer(cl_mem buffer) const { return ExternalBufferInfo::Query(buffer); }
    ExternalBufferInfo QueryBuffer(cl_mem buffer) const { return ExternalBufferInfo::Query(buffer); }

    // What Create() makes. Fine-grain memory only if the configuration asks for it.
    MemoryStrategy DetermineStrategy(std::size_t size_bytes, const BufferUsageHint &hint = BufferUsageHint::Default()) const {
        if (config_.force_svm) {
            return config_.prefer_coarse_grain ? MemoryStrategy::SVM_COARSE_GRAIN : MemoryStrategy::SVM_FINE_GRAIN;
        }
        const bool is_regular = config_.force_regular || hint.gpu_only || size_bytes < config_.small_buffer_threshold;
        const bool has_svm = session_->best_route() == HIPCL_ROUTE_SVM_COARSE;
        return is_regular || !has_svm ? MemoryStrategy::REGULAR_BUFFER : MemoryStrategy::SVM_COARSE_GRAIN;
    }
    const SVMCapabilities &GetCapabilities() const { return capabilities_; }
    const BufferConfig &GetConfig() const { return config_; }
    void SetConfig(const BufferConfig &config) { config_ = config; }
    void PrintInfo() const {
        std::cout << capabilities_.ToString() << "regular buffers: "
                  << (config_.force_svm ? "never" : config_.force_regular ? "always" : "below ");
        if (!config_.force_svm && !config_.force_regular) std::cout << config_.small_buffer_threshold << " bytes";
        std::cout << "\n";
    }
    std::string GetStatistics() const {
        std::ostringstream text;
        text << regular_ + svm_ << " buffers, " << svm_ << " of them SVM, " << bytes_ << " bytes\n";
        return text.str();
    }

  private:
    std::shared_ptr<detail::Session> session_;
    std::shared_ptr<detail::KnownQueue> queue_;
    cl_context context_;
    SVMCapabilities capabilities_;
    BufferConfig config_;
    std::atomic<std::size_t> regular_{0}, svm_{0}, bytes_{0};
};

// A program, and its kernels by name.
class KernelProgram {
  public:
    // Throws the compiler's log.
    explicit KernelProgram(const std::string &source, const std::string &options = std::string())
        : session_(detail::session()), source_(source), options_(options) {
        cl_int error = CL_SUCCESS;
        const char *text = source_.c_str();
        const detail::OpenCL &cl = session_->cl;
        native_ = cl.CreateProgramWithSource(session_->native.context, 1, &text, nullptr, &error);
        CheckCLError(error, "clCreateProgramWithSource");
        error = cl.BuildProgram(native_, 1, &session_->native.device, options_.c_str(), nullptr, nullptr);
        if (error != CL_SUCCESS) {
            const std::string log = build_log();
            (void)cl.ReleaseProgram(native_);
            throw OpenCLError("the program does not build (" + std::to_string(error) + "); the compiler says:\n" + log, error);
        }
    }
    KernelProgram(const KernelProgram &) = delete;
    KernelProgram &operator=(const KernelProgram &) = delete;
    ~KernelProgram() {
        for (const auto &kernel : kernels_) check(session_->cl.ReleaseKernel(kernel.second), "clReleaseKernel");
        check(session_->cl.ReleaseProgram(native_), "clReleaseProgram");
    }

    // One kernel object for each name, which lives as long as the program.
    cl_kernel GetOrCreateKernel(const std::string &kernel_name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = kernels_.find(kernel_name);
        if (found != kernels_.end()) return found->second;
        cl_int error = CL_SUCCESS;
        const cl_kernel kernel = session_->cl.CreateKernel(native_, kernel_name.c_str(), &error);
        if (error == detail::INVALID_KERNEL_NAME) {
            throw OpenCLError("the program has no kernel `" + kernel_name + "`; it has: " + kernel_names(), error);
        }
        CheckCLError(error, "clCreateKernel(" + kernel_name + ")");
        return kernels_[kernel_name] = kernel;
    }
    cl_program GetProgram() const { return native_; }
    // Whether the kernel was created already.
    bool HasKernel(const std::string &kernel_name) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return kernels_.count(kernel_name) != 0;
    }
    std::size_t GetKernelCount() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return kernels_.size();
    }
    const std::string &GetSource() const { return source_; }
    // For launches on HIP streams. The first call builds it, or takes it from the bridge's cache.
    const hipcl::Program &GetSharedProgram() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!shared_) shared_ = session_->bridge.build(source_.c_str(), options_.c_str());
        return shared_;
    }

  private:
    std::string build_log() const {
        std::size_t bytes = 0;
        const auto query = session_->cl.GetProgramBuildInfo;
        const cl_device_id device = session_->native.device;
        if (query(native_, device, detail::PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
        std::string log(bytes, '\0');
        if (query(native_, device, detail::PROGRAM_BUILD_LOG, bytes, &log[0], nullptr) != CL_SUCCESS) return "";
        return log.substr(0, log.find('\0'));
    }
    std::string kernel_names() const {
        char names[1024] = {};
        const cl_int error = session_->cl.GetProgramInfo(native_, detail::PROGRAM_KERNEL_NAMES, sizeof names, names, nullptr);
        return error == CL_SUCCESS ? names : "more than fit a line";
    }
    void check(cl_int error, const char *operation) noexcept {
        if (error != CL_SUCCESS) session_->defer(std::string(operation) + " failed: " + std::to_string(error));
    }

    std::shared_ptr<detail::Session> session_;
    std::string source_;
    std::string options_;
    cl_program native_ = nullptr;
    hipcl::Program shared_;
    mutable std::mutex mutex_;
    std::map<std::string, cl_kernel> kernels_;
};

// Programs by their whole source.
class KernelProgramCache {
  public:
    static std::shared_ptr<KernelProgram> GetOrCompile(const std::string &source) {
        Cache &cache = one();
        const std::lock_guard<std::mutex> lock(cache.mutex);
        const auto found = cache.programs.find(source);
        if (found != cache.programs.end()) {
            cache.hits++;
            return found->second;
        }
        auto program = std::make_shared<KernelProgram>(source);
        cache.misses++;
        cache.programs[source] = program;
        return program;
    }
    static std::string GetCacheStatistics() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        std::ostringstream text;
        text << one().programs.size() << " programs, " << one().hits << " hits, " << one().misses << " misses\n";
        return text.str();
    }
    static void Clear() {
        std::map<std::string, std::shared_ptr<KernelProgram>> programs;
        const std::lock_guard<std::mutex> lock(one().mutex);
        programs.swap(one().programs);
        one().hits = one().misses = 0;
    }
    static std::size_t GetCacheSize() {
        const std::lock_guard<std::mutex> lock(one().mutex);
        return one().programs.size();
    }
    KernelProgramCache() = delete;

  private:
    friend class OpenCLManager;
    struct Cache {
        std::mutex mutex;
        std::map<std::string, std::shared_ptr<KernelProgram>> programs;
        std::size_t hits = 0, misses = 0;
    };
    static Cache &one() {
        static Cache *const cache = new Cache;
        return *cache;
    }
    // The program of a cl_program that GetOrCompile() made.
    static std::shared_ptr<KernelProgram> of(cl_program native) {
        const std::lock_guard<std::mutex> lock(one().mutex);
        for (const auto &entry : one().programs) {
            if (entry.second->GetProgram() == native) return entry.second;
        }
        throw OpenCLError("the cl_program is none of GetOrCompileProgram(), or the cache was cleared");
    }
};

inline void OpenCLCore::Cleanup() {
    KernelProgramCache::Clear();
    CommandQueuePool::Cleanup();
    std::shared_ptr<detail::Session> session;
    std::map<cl_context, std::shared_ptr<detail::Session>> others;
    const std::lock_guard<std::mutex> lock(detail::process().mutex);
    session.swap(detail::process().session);
    others.swap(detail::process().others);
}

// The engine: programs, buffers and launches in one object.
class OpenCLComputeEngine {
  public:
    // Opens OpenCL and the queue pool where that has not been done.
    static void Initialize(DeviceType device_type = DeviceType::GPU) {
        OpenCLCore::Initialize(device_type);
        CommandQueuePool::Initialize();
    }
    static OpenCLComputeEngine &GetInstance() {
        (void)detail::session();
        CommandQueuePool::Initialize();
        static OpenCLComputeEngine *const engine = new OpenCLComputeEngine;
        return *engine;
    }
    static bool IsInitialized() { return OpenCLCore::IsInitialized() && CommandQueuePool::IsInitialized(); }
    static void Cleanup() { OpenCLCore::Cleanup(); }

    OpenCLComputeEngine(const OpenCLComputeEngine &) = delete;
    OpenCLComputeEngine &operator=(const OpenCLComputeEngine &) = delete;

    std::shared_ptr<KernelProgram> LoadProgram(const std::string &source) {
        return KernelProgramCache::GetOrCompile(source);
    }
    cl_kernel GetKernel(const std::shared_ptr<KernelProgram> &program, const std::string &kernel_name) {
        detail::not_null(program.get(), "the program");
        return program->GetOrCreateKernel(kernel_name);
    }
    // An argument that is a value; ExecuteKernel() sets the buffers, from 0.
    template <class T> void SetKernelArg(cl_kernel kernel, cl_uint arg_index, const T &value) {
        static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value, "the argument is a plain value");
        detail::not_null(kernel, "the kernel");
        const auto session = detail::session();
        const std::lock_guard<std::mutex> lock(session->launching);
        CheckCLError(session->cl.SetKernelArg(kernel, arg_index, sizeof value, &value), "clSetKernelArg");
    }

    std::unique_ptr<GPUMemoryBuffer> CreateBuffer(std::size_t num_elements, MemoryType type = MemoryType::GPU_READ_WRITE) {
        const auto session = detail::session();
        return counted(std::make_unique<GPUMemoryBuffer>(session->native.context, CommandQueuePool::own_next(),
                                                         num_elements, type));
    }
    std::unique_ptr<GPUMemoryBuffer> CreateBufferWithData(const ComplexVector &data,
                                                          MemoryType type = MemoryType::GPU_READ_ONLY) {
        return CreateTypedBufferWithData(data, type);
    }
    template <class T>
    std::unique_ptr<GPUMemoryBuffer> CreateTypedBufferWithData(const std::vector<T> &data,
                                                               MemoryType type = MemoryType::GPU_READ_ONLY) {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        const auto session = detail::session();
        const void *const bytes = data.data();
        return counted(std::make_unique<GPUMemoryBuffer>(session->native.context, CommandQueuePool::own_next(), bytes,
                                                         data.size() * sizeof(T), data.size(), type));
    }

    // Sets the buffers as the arguments from 0, launches, and waits for the end.
    void ExecuteKernel(cl_kernel kernel, const std::vector<cl_mem> &buffers,
                       const std::array<std::size_t, 3> &global_work_size,
                       const std::array<std::size_t, 3> &local_work_size) {
        launch(kernel, buffers, global_work_size, local_work_size).wait();
    }
    // Does not wait. The caller releases the event.
    cl_event ExecuteKernelAsync(cl_kernel kernel, const std::vector<cl_mem> &buffers,
                                const std::array<std::size_t, 3> &global_work_size,
                                const std::array<std::size_t, 3> &local_work_size) {
        return launch(kernel, buffers, global_work_size, local_work_size).release();
    }

    void Flush() { CommandQueuePool::FlushAll(); }
    // Waits for all OpenCL work.
    void Finish() { detail::session()->finish_all(); }
    void WaitForEvent(cl_event event) {
        if (event != nullptr) WaitForEvents({event});
    }
    void WaitForEvents(const std::vector<cl_event> &events) {
        if (events.empty()) return;
        CheckCLError(detail::session()->cl.WaitForEvents(static_cast<cl_uint>(events.size()), events.data()),
                     "clWaitForEvents");
    }
    // clReleaseEvent() for programs that link no OpenCL.
    void ReleaseEvent(cl_event event) {
        if (event != nullptr) CheckCLError(detail::session()->cl.ReleaseEvent(event), "clReleaseEvent");
    }

    std::unique_ptr<BufferFactory> CreateBufferFactory(const BufferConfig &config = BufferConfig::Default()) {
        const auto session = detail::session();
        return std::make_unique<BufferFactory>(session->native.context, CommandQueuePool::own_next(),
                                               session->native.device, config);
    }
    std::unique_ptr<IMemoryBuffer> CreateHybridBuffer(std::size_t num_elements,
                                                      MemoryType mem_type = MemoryType::GPU_READ_WRITE) {
        return CreateBufferWithStrategy(num_elements, MemoryStrategy::AUTO, mem_type);
    }
    std::unique_ptr<IMemoryBuffer> CreateBufferWithStrategy(std::size_t num_elements, MemoryStrategy strategy,
                                                            MemoryType mem_type = MemoryType::GPU_READ_WRITE) {
        auto buffer = CreateBufferFactory()->CreateWithStrategy(num_elements, strategy, mem_type);
        buffers_++;
        bytes_ += buffer->GetSizeBytes();
        return buffer;
    }
    // A cl_mem of another owner, used in place. Its context is this program's own, or registered.
    std::unique_ptr<IMemoryBuffer> WrapExternalMemoryBuffer(cl_mem external_buffer, std::size_t num_elements,
                                                            MemoryType type = MemoryType::GPU_READ_WRITE) {
        return std::make_unique<ExternalBuffer>(nullptr, nullptr, external_buffer, num_elements, type);
    }

    SVMCapabilities GetSVMCapabilities() const { return OpenCLCore::GetInstance().GetSVMCapabilities(); }
    bool IsSVMSupported() const { return OpenCLCore::GetInstance().IsSVMSupported(); }
    std::string GetSVMInfo() const { return OpenCLCore::GetInstance().GetSVMInfo(); }
    std::string GetDeviceInfo() const { return OpenCLCore::GetInstance().GetDeviceInfo(); }
    std::string GetCacheStatistics() const { return KernelProgramCache::GetCacheStatistics(); }
    std::string GetStatistics() const {
        std::ostringstream text;
        text << buffers_ << " buffers created, " << bytes_ << " bytes, " << launches_ << " launches\n"
             << GetCacheStatistics() << CommandQueuePool::GetStatistics();
        return text.str();
    }

    // For streams, BLAS handles and accesses. It lives until Cleanup().
    hipcl::Bridge &GetBridge() const { return detail::session()->bridge; }
    // The bytes that were copied since Initialize(), by hipcl and by these classes: the data set itself, input, results.
    hipcl_counters GetCounters() const { return detail::session()->counters(); }
    // What failed in destructors, one line each; empty if nothing did.
    std::string TakeDeferredErrors() { return detail::session()->take_deferred(); }

  private:
    OpenCLComputeEngine() = default;

    detail::Event launch(cl_kernel kernel, const std::vector<cl_mem> &buffers, const std::array<std::size_t, 3> &global,
                         const std::array<std::size_t, 3> &local) {
        auto event = detail::launched(detail::session(), CommandQueuePool::own_next(), kernel, buffers, global, local);
        launches_++;
        return event;
    }
    std::unique_ptr<GPUMemoryBuffer> counted(std::unique_ptr<GPUMemoryBuffer> buffer) {
        buffers_++;
        bytes_ += buffer->GetSizeBytes();
        return buffer;
    }

    std::atomic<std::size_t> buffers_{0}, bytes_{0}, launches_{0};
};

// The older manager: one queue, and caches of programs, kernels and named buffers.
class OpenCLManager {
  public:
    static void Initialize(cl_device_type device_type = CL_DEVICE_TYPE_GPU) {
        if (device_type != CL_DEVICE_TYPE_GPU && device_type != CL_DEVICE_TYPE_CPU) {
            throw std::invalid_argument("OpenCLManager::Initialize: pass CL_DEVICE_TYPE_GPU or CL_DEVICE_TYPE_CPU");
        }
        OpenCLCore::Initialize(device_type == CL_DEVICE_TYPE_CPU ? DeviceType::CPU : DeviceType::GPU);
    }
    static OpenCLManager &GetInstance() {
        static OpenCLManager *const manager = new OpenCLManager;
        return *manager;
    }
    static void Cleanup() { OpenCLCore::Cleanup(); }
    bool IsInitialized() const { return OpenCLCore::IsInitialized(); }

    OpenCLManager(const OpenCLManager &) = delete;
    OpenCLManager &operator=(const OpenCLManager &) = delete;

    cl_context GetContext() const { return detail::session()->native.context; }
    cl_command_queue GetQueue() const { return detail::session()->give_main(); }
    cl_device_id GetDevice() const { return detail::session()->native.device; }
    cl_platform_id GetPlatform() const { return detail::session()->native.platform; }
    std::string GetDeviceInfo() const { return OpenCLCore::GetInstance().GetDeviceInfo(); }

    // The cache owns the program and its kernels.
    cl_program GetOrCompileProgram(const std::string &source) {
        return KernelProgramCache::GetOrCompile(source)->GetProgram();
    }
    cl_kernel GetOrCreateKernel(cl_program program, const std::string &kernel_name) {
        return KernelProgramCache::of(program)->GetOrCreateKernel(kernel_name);
    }
    std::string GetCacheStatistics() const { return KernelProgramCache::GetCacheStatistics(); }
    std::string GetKernelCacheStatistics() const { return std::to_string(GetKernelCacheSize()) + " kernels\n"; }
    std::size_t GetKernelCacheSize() const {
        std::size_t kernels = 0;
        const std::lock_guard<std::mutex> lock(KernelProgramCache::one().mutex);
        for (const auto &entry : KernelProgramCache::one().programs) kernels += entry.second->GetKernelCount();
        return kernels;
    }
    // Kernels go with their programs, so this clears both.
    void ClearKernelCache() { KernelProgramCache::Clear(); }

    std::unique_ptr<GPUMemoryBuffer> CreateBuffer(std::size_t num_elements, MemoryType type) {
        return std::make_unique<GPUMemoryBuffer>(GetContext(), own_queue(), num_elements, type);
    }
    // 0 bytes are those of `num_elements` complex numbers.
    std::unique_ptr<GPUMemoryBuffer> CreateBufferWithData(std::size_t num_elements, const void *host_data,
                                                          std::size_t data_size_bytes = 0,
                                                          MemoryType type = MemoryType::GPU_READ_ONLY) {
        const std::size_t all = detail::product(num_elements, sizeof(ComplexFloat), "CreateBufferWithData");
        return std::make_unique<GPUMemoryBuffer>(GetContext(), own_queue(), host_data,
                                                 data_size_bytes == 0 ? all : data_size_bytes, num_elements, type);
    }
    // A cl_mem of another owner, used in place.
    std::unique_ptr<GPUMemoryBuffer> WrapExternalBuffer(cl_mem external_gpu_buffer, std::size_t num_elements,
                                                        MemoryType type) {
        return std::make_unique<GPUMemoryBuffer>(nullptr, nullptr, external_gpu_buffer, num_elements, type);
    }
    // As WrapExternalBuffer() with the newer interface. Nothing is copied: where the cl_mem is a view of shared virtual
    // memory, that is the memory.
    std::unique_ptr<IMemoryBuffer> WrapExternalBufferWithSVM(cl_mem external_buffer, std::size_t num_elements,
                                                             MemoryType type) {
        return std::make_unique<ExternalBuffer>(nullptr, nullptr, external_buffer, num_elements, type);
    }
    static ExternalBufferInfo GetExternalBufferInfo(cl_mem buffer) { return ExternalBufferInfo::Query(buffer); }
    static ExternalBufferInfo GetBufferInfo(cl_mem buffer) { return ExternalBufferInfo::Query(buffer); }
    // A queue of the buffer's context: this program's own, or that of RegisterExternalContext(). It is not the caller's.
    cl_command_queue GetQueueForBuffer(cl_mem buffer) const {
        return detail::session_of(detail::context_of(detail::session()->cl, buffer))->give_main();
    }

    void RegisterBuffer(const std::string &name, std::shared_ptr<GPUMemoryBuffer> buffer) {
        const std::lock_guard<std::mutex> lock(mutex_);
        named_[name] = buffer;
    }
    // Null if there is none of this name any more.
    std::shared_ptr<GPUMemoryBuffer> GetBuffer(const std::string &name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = named_.find(name);
        return found == named_.end() ? nullptr : found->second.lock();
    }
    std::shared_ptr<GPUMemoryBuffer> GetOrCreateBuffer(const std::string &name, std::size_t num_elements, MemoryType type) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::shared_ptr<GPUMemoryBuffer> buffer = named_[name].lock();
        if (!buffer) {
            buffer = CreateBuffer(num_elements, type);
            named_[name] = buffer;
        } else if (buffer->GetNumElements() != num_elements) {
            throw OpenCLError("the buffer `" + name + "` has " + std::to_string(buffer->GetNumElements()) +
                              " elements, not " + std::to_string(num_elements));
        }
        return buffer;
    }
    void CleanupExpiredBuffers() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto entry = named_.begin(); entry != named_.end();) {
            entry = entry->second.expired() ? named_.erase(entry) : std::next(entry);
        }
    }
    void PrintMemoryStatistics() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::cout << named_.size() << " named buffers\n";
    }

  private:
    OpenCLManager() = default;
    static cl_command_queue own_queue() { return detail::session()->native.queue; }
    mutable std::mutex mutex_;
    std::map<std::string, std::weak_ptr<GPUMemoryBuffer>> named_;
};

// The oldest way to make a buffer.
class GPUMemoryManager {
  public:
    static void Initialize() { OpenCLManager::Initialize(); }
    static std::unique_ptr<GPUMemoryBuffer> CreateBuffer(std::size_t num_elements,
                                                         MemoryType type = MemoryType::GPU_WRITE_ONLY) {
        return OpenCLManager::GetInstance().CreateBuffer(num_elements, type);
    }
    static std::unique_ptr<GPUMemoryBuffer> WrapExternalBuffer(cl_mem external_gpu_buffer, std::size_t num_elements,
                                                               MemoryType type = MemoryType::GPU_WRITE_ONLY) {
        return OpenCLManager::GetInstance().WrapExternalBuffer(external_gpu_buffer, num_elements, type);
    }
    static void PrintStatistics() { OpenCLManager::GetInstance().PrintMemoryStatistics(); }
    GPUMemoryManager() = delete;
};

// A queue of another owner. Hand-offs to HIP wait for it as long as this lives.
class ExternalQueueWrapper {
  public:
    // In order, and of this program's own context or a registered one.
    explicit ExternalQueueWrapper(cl_command_queue external_queue) {
        detail::not_null(external_queue, "the command queue");
        context_ = detail::queried<cl_context>(detail::session()->cl.GetCommandQueueInfo, external_queue,
                                               detail::QUEUE_CONTEXT, "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)");
        session_ = detail::session_of(context_);
        queue_ = session_->known(external_queue);
    }

    cl_command_queue Get() const { return queue_->raw; }
    cl_context GetContext() const { return context_; }
    void Flush() { CheckCLError(session_->cl.Flush(queue_->raw), "clFlush"); }
    void Finish() { queue_->handle.finish(); }
    // Complete when everything that is on the queue by now is done. The caller releases it.
    cl_event RecordEvent() { return marked(*session_, queue_->raw).release(); }
    // What is enqueued from now on runs after the event, which is of the same context.
    void WaitForEvent(cl_event event) {
        detail::not_null(event, "the event");
        CheckCLError(session_->cl.EnqueueBarrierWithWaitList(queue_->raw, 1, &event, nullptr),
                     "clEnqueueBarrierWithWaitList");
    }
    // What is enqueued here from now on runs after what is on the other queue by now. OpenCL has no event for two contexts:
    // if they differ, the calling thread waits.
    void WaitForQueue(cl_command_queue other) {
        detail::not_null(other, "the command queue");
        const auto context = detail::queried<cl_context>(session_->cl.GetCommandQueueInfo, other, detail::QUEUE_CONTEXT,
                                                         "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)");
        if (context != context_) return CheckCLError(session_->cl.Finish(other), "clFinish");
        const detail::Event event = marked(*session_, other);
        CheckCLError(session_->cl.Flush(other), "clFlush");
        WaitForEvent(event.get());
    }

  private:
    static detail::Event marked(detail::Session &session, cl_command_queue queue) {
        cl_event event = nullptr;
        CheckCLError(session.cl.EnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
        return detail::Event(session.shared_from_this(), event);
    }
    cl_context context_ = nullptr;
    std::shared_ptr<detail::Session> session_;
    std::shared_ptr<detail::KnownQueue> queue_;
};

namespace detail {

// A queue of a buffer: the caller's, else the session's, else one for this call.
class QueueOf {
  public:
    QueueOf(const std::shared_ptr<Session> &session, const ExternalBufferInfo &info, cl_context context,
            cl_command_queue queue)
        : session_(session), raw_(queue) {
        if (context != nullptr && context != info.context) {
            throw OpenCLError("the buffer belongs to another context than the one that was passed with it");
        }
        if (raw_ != nullptr) return;
        cl_int error = CL_SUCCESS;
        raw_ = own_ = session_->cl.CreateCommandQueue(info.context, info.device, 0, &error);
        CheckCLError(error, "clCreateCommandQueue");
    }
    QueueOf(const QueueOf &) = delete;
    QueueOf &operator=(const QueueOf &) = delete;
    ~QueueOf() {
        if (own_ != nullptr) (void)session_->cl.ReleaseCommandQueue(own_);
    }
    cl_command_queue get() const noexcept { return raw_; }

  private:
    std::shared_ptr<Session> session_;
    cl_command_queue raw_;
    cl_command_queue own_ = nullptr;
};

// That the memory, if it is this header's, is OpenCL's, and that its commands are done.
inline void claim(const ExternalBufferInfo &info, cl_mem buffer) {
    std::shared_ptr<Session> session;
    {
        const std::lock_guard<std::mutex> lock(process().mutex);
        const auto other = process().others.find(info.context);
        session = other == process().others.end() ? process().session : other->second;
    }
    if (!session) return;
    if (const auto memory = session->memory_of(buffer)) {
        (void)memory->object();
        memory->finish();
    }
}

inline void check_size(const ExternalBufferInfo &info, std::size_t offset, std::size_t size, const char *operation) {
    if (offset > info.size_bytes || size > info.size_bytes - offset) {
        throw OpenCLError(std::string(operation) + ": " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                          " of a buffer of " + std::to_string(info.size_bytes) + " bytes");
    }
}

} // namespace detail

// Between host memory and a buffer of any context. All calls wait for the end.
class CLBufferBridge {
  public:
    // The context and the queue may be null: then they are the buffer's own, and a new queue.
    static void CopyFromExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                                 std::size_t offset_bytes, std::size_t size_bytes, void *host_buffer) {
        copy(external_buffer, external_context, external_queue, offset_bytes, size_bytes, host_buffer, true);
    }
    static void CopyFromExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                                 std::size_t size_bytes, void *host_buffer) {
        copy(external_buffer, external_context, external_queue, 0, size_bytes, host_buffer, true);
    }
    static void CopyToExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                               std::size_t offset_bytes, std::size_t size_bytes, const void *host_buffer) {
        // Is read only.
        copy(external_buffer, external_context, external_queue, offset_bytes, size_bytes, const_cast<void *>(host_buffer),
             false);
    }
    static void CopyToExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                               std::size_t size_bytes, const void *host_buffer) {
        CopyToExternal(external_buffer, external_context, external_queue, 0, size_bytes, host_buffer);
    }

    // By the pointer of the shared virtual memory that the buffer is a view of. False, and nothing is done, for a buffer
    // that is none; errors are exceptions.
    static bool TryCopySVM(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                           std::size_t size_bytes, void *host_buffer, bool read) {
        const auto session = detail::session();
        const ExternalBufferInfo info = ExternalBufferInfo::Query(external_buffer);
        if (!info.is_svm_compatible || session->cl.EnqueueSVMMemcpy == nullptr) return false;
        check(info, 0, size_bytes, host_buffer, read);
        const detail::QueueOf queue(session, info, external_context, external_queue);
        detail::claim(info, external_buffer);
        void *const to = read ? host_buffer : info.host_ptr;
        const void *const from = read ? info.host_ptr : host_buffer;
        CheckCLError(session->cl.EnqueueSVMMemcpy(queue.get(), 1, to, from, size_bytes, 0, nullptr, nullptr),
                     "clEnqueueSVMMemcpy");
        count(*session, size_bytes, read);
        return true;
    }

  private:
    static void count(detail::Session &session, std::size_t bytes, bool read) {
        read ? session.count_result(bytes) : session.count_input(bytes);
    }

    static void check(const ExternalBufferInfo &info, std::size_t offset, std::size_t size, const void *host, bool read) {
        detail::not_null(host, "the host memory");
        detail::check_size(info, offset, size, read ? "CopyFromExternal" : "CopyToExternal");
    }

    static void copy(cl_mem buffer, cl_context context, cl_command_queue raw_queue, std::size_t offset, std::size_t size,
                     void *host, bool read) {
        const auto session = detail::session();
        const ExternalBufferInfo info = ExternalBufferInfo::Query(buffer);
        check(info, offset, size, host, read);
        if (size == 0) return;
        const detail::QueueOf queue(session, info, context, raw_queue);
        detail::claim(info, buffer);
        if (read) {
            CheckCLError(session->cl.EnqueueReadBuffer(queue.get(), buffer, 1, offset, size, host, 0, nullptr, nullptr),
                         "clEnqueueReadBuffer");
        } else {
            CheckCLError(session->cl.EnqueueWriteBuffer(queue.get(), buffer, 1, offset, size, host, 0, nullptr, nullptr),
                         "clEnqueueWriteBuffer");
        }
        count(*session, size, read);
    }
};

// Between two buffers. This copies the data set, and the counters say so.
class BufferBridge {
  public:
    // After what is on both queues by now; waits for the end. In one context on the device, else through host memory, in
    // pieces of at most 8 MiB.
    static void CopyBetweenContexts(cl_mem src, cl_context src_ctx, cl_command_queue src_queue, cl_mem dst,
                                    cl_context dst_ctx, cl_command_queue dst_queue, std::size_t size_bytes) {
        const auto session = detail::session();
        const detail::OpenCL &cl = session->cl;
        const ExternalBufferInfo from = ExternalBufferInfo::Query(src), to = ExternalBufferInfo::Query(dst);
        detail::check_size(from, 0, size_bytes, "CopyBetweenContexts, source");
        detail::check_size(to, 0, size_bytes, "CopyBetweenContexts, destination");
        if (size_bytes == 0) return;
        const detail::QueueOf source(session, from, src_ctx, src_queue), target(session, to, dst_ctx, dst_queue);
        detail::claim(from, src);
        detail::claim(to, dst);
        if (from.context == to.context) {
            CheckCLError(cl.Finish(source.get()), "clFinish");
            CheckCLError(cl.EnqueueCopyBuffer(target.get(), src, dst, 0, 0, size_bytes, 0, nullptr, nullptr),
                         "clEnqueueCopyBuffer");
            session->count_data_set(size_bytes);
            return CheckCLError(cl.Finish(target.get()), "clFinish");
        }
        std::vector<unsigned char> piece(std::min(size_bytes, std::size_t(8) << 20));
        for (std::size_t at = 0; at < size_bytes; at += piece.size()) {
            const std::size_t bytes = std::min(piece.size(), size_bytes - at);
            CheckCLError(cl.EnqueueReadBuffer(source.get(), src, 1, at, bytes, piece.data(), 0, nullptr, nullptr),
                         "clEnqueueReadBuffer");
            CheckCLError(cl.EnqueueWriteBuffer(target.get(), dst, 1, at, bytes, piece.data(), 0, nullptr, nullptr),
                         "clEnqueueWriteBuffer");
            session->count_data_set(2 * bytes);
        }
    }
};

struct ExternalContextInfo {
    cl_context context = nullptr;
    cl_device_id device = nullptr;
    // Of the context; GetQueueForBuffer() gives it.
    cl_command_queue queue = nullptr;
};

// Contexts of other owners, whose buffers are then used in place.
class ExternalContextManager {
  public:
    // Opens a bridge on the context, which takes up to some seconds. It has one device, the one of this program. A queue
    // of null is a new one.
    void RegisterExternalContext(cl_context external_ctx, cl_device_id device, cl_command_queue queue = nullptr) {
        detail::not_null(external_ctx, "the context");
        detail::not_null(device, "the device");
        const auto own = detail::session();
        if (IsRegistered(external_ctx)) return;
        ExternalBufferInfo info;
        info.context = external_ctx;
        info.device = device;
        const detail::QueueOf given(own, info, external_ctx, queue);
        auto session = detail::Session::adopt(external_ctx, device, given.get());
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        detail::process().others.emplace(external_ctx, std::move(session));
    }
    // Buffers that were wrapped before may be used on.
    void UnregisterExternalContext(cl_context external_ctx) {
        std::shared_ptr<detail::Session> session;
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        const auto found = detail::process().others.find(external_ctx);
        if (found == detail::process().others.end()) return;
        session = std::move(found->second);
        detail::process().others.erase(found);
    }
    // Whether buffers of the context can be wrapped.
    bool IsRegistered(cl_context context) const {
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        const auto &session = detail::process().session;
        return (session && session->native.context == context) || detail::process().others.count(context) != 0;
    }
    ExternalContextInfo GetContextInfo(cl_context context) const {
        const auto session = detail::session_of(context);
        return {session->native.context, session->native.device, session->give_main()};
    }
    // The whole buffer, in place.
    std::unique_ptr<IMemoryBuffer> WrapExternalBuffer(cl_mem buffer) const {
        const ExternalBufferInfo info = ExternalBufferInfo::Query(buffer);
        const MemoryType type = info.IsWritable() ? MemoryType::GPU_READ_WRITE : MemoryType::GPU_READ_ONLY;
        return std::make_unique<ExternalBuffer>(info.context, nullptr, buffer, info.num_elements, type);
    }
};

} // namespace ManagerOpenCL

#endif
