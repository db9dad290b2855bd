// The buffers. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_BUFFERS_HPP
#define HIPCL_MANAGER_OPENCL_BUFFERS_HPP

#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "external_info.hpp"

namespace ManagerOpenCL {

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
    auto known = queue == nullptr ? session->main : session->known(queue);
    // Two wrappers of one cl_mem, or of one of this header's, have one memory.
    if (auto own = session->order->registry.memory_of(external)) {
        own->wrap_again(type, std::move(known));
        return own;
    }
    hipcl::Buffer buffer = session->bridge.adopt(external);
    const hipcl_access_mode mode = info.IsWritable() ? HIPCL_ACCESS_WRITE : HIPCL_ACCESS_READ;
    auto memory = std::make_shared<Memory>(std::move(session), std::move(known), std::move(buffer), mode, type);
    memory->begin(external);
    return memory;
}

// The memory of a buffer that was not moved elsewhere.
inline const std::shared_ptr<Memory> &present(const std::shared_ptr<Memory> &memory) {
    if (memory == nullptr) throw OpenCLError("the buffer was moved; use the one that it was moved to");
    return memory;
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
        if (size_bytes != 0) within(size_bytes).write(0, data, size_bytes)->wait();
    }
    ComplexVector Read() override { return ReadPartial(num_elements_); }
    ComplexVector ReadPartial(std::size_t num_elements) override {
        if (num_elements > num_elements_) throw too_many(num_elements);
        ComplexVector data(num_elements);
        ReadRaw(data.data(), num_elements * sizeof(ComplexFloat));
        return data;
    }
    void ReadRaw(void *dest, std::size_t size_bytes) override {
        if (size_bytes != 0) within(size_bytes).read(0, dest, size_bytes)->wait();
    }
    cl_event WriteAsync(const ComplexVector &data) override {
        const std::size_t bytes = data.size() * sizeof(ComplexFloat);
        return within(bytes).write(0, data.data(), bytes)->given();
    }
    cl_event WriteAsync(ComplexVector &&) = delete;
    cl_event ReadAsync(ComplexVector &out_data) override {
        out_data.resize(num_elements_);
        return memory()->read(0, out_data.data(), GetSizeBytes())->given();
    }

    cl_mem GetCLMem() const override { return memory()->object(); }
    void *GetSVMPointer() const override { return memory()->pointer(); }
    void SetAsKernelArg(cl_kernel kernel, cl_uint arg_index) override { memory()->set_argument(kernel, arg_index); }

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
        if (IsSVM()) memory()->map(write, read);
    }
    void Unmap() override { memory()->unmap(); }
    bool IsMapped() const override { return memory_ != nullptr && memory_->is_mapped(); }

    hipcl::Buffer &GetSharedBuffer() override { return memory()->shared(); }

  protected:
    SharedMemoryBuffer(std::shared_ptr<Memory> memory, std::size_t num_elements, MemoryType type, MemoryStrategy strategy,
                       bool is_external)
        : memory_(std::move(memory)), num_elements_(num_elements), type_(type), strategy_(strategy),
          is_external_(is_external) {}

  private:
    const std::shared_ptr<Memory> &memory() const { return present(memory_); }
    Memory &within(std::size_t bytes) const {
        if (bytes > GetSizeBytes()) {
            throw OpenCLError(std::to_string(bytes) + " bytes do not fit a buffer of " + std::to_string(GetSizeBytes()) +
                              " bytes");
        }
        return *memory();
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

} // namespace ManagerOpenCL

#endif
