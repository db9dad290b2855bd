// The factory of buffers, which chooses their kind. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_FACTORY_HPP
#define HIPCL_MANAGER_OPENCL_FACTORY_HPP

#include <atomic>
#include <cstddef>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "gpu_memory_buffer.hpp"

namespace ManagerOpenCL {

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
