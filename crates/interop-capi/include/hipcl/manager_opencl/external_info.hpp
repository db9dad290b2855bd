// What OpenCL says about a buffer of another owner. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_EXTERNAL_INFO_HPP
#define HIPCL_MANAGER_OPENCL_EXTERNAL_INFO_HPP

#include <cstddef>
#include <vector>

#include "device.hpp"

namespace ManagerOpenCL {

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

} // namespace ManagerOpenCL

#endif
