// The buffers and their factory. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_BUFFERS_HPP
#define HIPCL_MANAGER_OPENCL_BUFFERS_HPP

#include <atomic>
#include <cstddef>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
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

} // namespace ManagerOpenCL

#endif
