// OpenCL's types, its errors, and the functions that ManagerOpenCL on hipcl calls. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_OPENCL_HPP
#define HIPCL_MANAGER_OPENCL_OPENCL_HPP

#ifdef HIPCL_EXPECTED
#error "manager_opencl.hpp reports errors by exceptions: compile this file without HIPCL_EXPECTED"
#endif

#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../hipcl.hpp"

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

// Values from CL/cl.h.
constexpr cl_uint DEVICE_TYPE = 0x1000, DEVICE_MAX_COMPUTE_UNITS = 0x1002, DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
                  DEVICE_MAX_WORK_ITEM_SIZES = 0x1005, DEVICE_GLOBAL_MEM_SIZE = 0x101F, DEVICE_LOCAL_MEM_SIZE = 0x1023,
                  DEVICE_NAME = 0x102B, DEVICE_VENDOR = 0x102C, DRIVER_VERSION = 0x102D, DEVICE_VERSION = 0x102F,
                  DEVICE_SVM_CAPABILITIES = 0x1053, CONTEXT_DEVICES = 0x1081, QUEUE_CONTEXT = 0x1090,
                  QUEUE_DEVICE = 0x1091, MEM_TYPE = 0x1100, MEM_FLAGS = 0x1101, MEM_SIZE = 0x1102, MEM_HOST_PTR = 0x1103,
                  MEM_CONTEXT = 0x1106, MEM_ASSOCIATED_MEMOBJECT = 0x1107, MEM_OFFSET = 0x1108,
                  MEM_USES_SVM_POINTER = 0x1109, MEM_OBJECT_BUFFER = 0x10F0, PROGRAM_KERNEL_NAMES = 0x1168,
                  PROGRAM_BUILD_LOG = 0x1183, EVENT_COMMAND_EXECUTION_STATUS = 0x11D3;
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
    cl_int (*GetEventInfo)(cl_event, cl_uint, std::size_t, void *, std::size_t *) = nullptr;
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
        load(platform, 42, GetEventInfo);
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

} // namespace detail

} // namespace ManagerOpenCL

#endif
