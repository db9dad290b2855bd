// The older class of buffers. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_GPU_MEMORY_BUFFER_HPP
#define HIPCL_MANAGER_OPENCL_GPU_MEMORY_BUFFER_HPP

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "buffers.hpp"

namespace ManagerOpenCL {

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
        memory_->write(0, host_data, data_size_bytes)->wait();
    }
    GPUMemoryBuffer(GPUMemoryBuffer &&) noexcept = default;
    GPUMemoryBuffer &operator=(GPUMemoryBuffer &&) noexcept = default;
    GPUMemoryBuffer(const GPUMemoryBuffer &) = delete;
    GPUMemoryBuffer &operator=(const GPUMemoryBuffer &) = delete;

    ComplexVector ReadFromGPU() { return ReadPartial(num_elements_); }
    ComplexVector ReadPartial(std::size_t num_elements) {
        check_elements(num_elements);
        ComplexVector data(num_elements);
        if (num_elements != 0) memory()->read(0, data.data(), num_elements * sizeof(ComplexFloat))->wait();
        gpu_dirty_ = false;
        return data;
    }
    void WriteToGPU(const ComplexVector &data) {
        check_elements(data.size());
        if (!data.empty()) memory()->write(0, data.data(), data.size() * sizeof(ComplexFloat))->wait();
        gpu_dirty_ = true;
    }
    // The vector may be moved, but is not changed until the event is complete. The caller releases the event.
    std::pair<ComplexVector, cl_event> ReadFromGPUAsync() {
        check_elements(num_elements_);
        ComplexVector data(num_elements_);
        const cl_event event = memory()->read(0, data.data(), size_bytes_)->given();
        return {std::move(data), event};
    }
    cl_event WriteToGPUAsync(const ComplexVector &data) {
        check_elements(data.size());
        gpu_dirty_ = true;
        return memory()->write(0, data.data(), data.size() * sizeof(ComplexFloat))->given();
    }
    cl_event WriteToGPUAsync(ComplexVector &&) = delete; // a temporary is gone before the transfer is done
    // Elements of any type.
    template <class T> std::vector<T> ReadAs() {
        static_assert(std::is_trivially_copyable<T>::value, "elements are copied as bytes");
        if (size_bytes_ != num_elements_ * sizeof(T)) throw wrong_type(sizeof(T));
        std::vector<T> data(num_elements_);
        memory()->read(0, data.data(), size_bytes_)->wait();
        return data;
    }

    std::size_t GetNumElements() const { return num_elements_; }
    std::size_t GetSizeBytes() const { return size_bytes_; }
    bool IsExternalBuffer() const { return is_external_; }
    // Whether it was written since it was read.
    bool IsGPUDirty() const { return gpu_dirty_; }
    MemoryType GetMemoryType() const { return type_; }
    // OpenCL's object. It belongs to the buffer.
    cl_mem Get() const { return memory()->object(); }
    void PrintStats() const {
        std::cout << "GPUMemoryBuffer: " << num_elements_ << " elements, " << size_bytes_ << " bytes"
                  << (is_external_ ? ", external" : "") << "\n";
    }

    // As IMemoryBuffer's.
    hipcl::Buffer &GetSharedBuffer() { return memory()->shared(); }
    // The memory as an IMemoryBuffer, beside this one.
    std::unique_ptr<IMemoryBuffer> AsMemoryBuffer() const {
        return std::make_unique<RegularBuffer>(memory(), size_bytes_ / sizeof(ComplexFloat), type_, is_external_);
    }

  private:
    const std::shared_ptr<detail::Memory> &memory() const { return detail::present(memory_); }
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

} // namespace ManagerOpenCL

#endif
