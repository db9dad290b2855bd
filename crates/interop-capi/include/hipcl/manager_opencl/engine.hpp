// The engine, and the managers before it. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_ENGINE_HPP
#define HIPCL_MANAGER_OPENCL_ENGINE_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "programs.hpp"

namespace ManagerOpenCL {

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
        const std::lock_guard<std::mutex> lock(session->order->launching);
        CheckCLError(session->cl.SetKernelArg(kernel, arg_index, sizeof value, &value), "clSetKernelArg");
        session->order->arguments.clear(kernel, arg_index);
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
        launch(kernel, buffers, global_work_size, local_work_size)->wait();
    }
    // Does not wait. The caller releases the event.
    cl_event ExecuteKernelAsync(cl_kernel kernel, const std::vector<cl_mem> &buffers,
                                const std::array<std::size_t, 3> &global_work_size,
                                const std::array<std::size_t, 3> &local_work_size) {
        return launch(kernel, buffers, global_work_size, local_work_size)->given();
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

    detail::EventPtr launch(cl_kernel kernel, const std::vector<cl_mem> &buffers, const std::array<std::size_t, 3> &global,
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

} // namespace ManagerOpenCL

#endif
