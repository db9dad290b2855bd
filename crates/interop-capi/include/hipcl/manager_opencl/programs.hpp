// Programs, kernels and their cache. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_PROGRAMS_HPP
#define HIPCL_MANAGER_OPENCL_PROGRAMS_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "factory.hpp"

namespace ManagerOpenCL {

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
        for (const auto &named : kernels_) {
            for (const auto &kernel : named.second) {
                session_->order->forget(kernel.second);
                check(session_->cl.ReleaseKernel(kernel.second), "clReleaseKernel");
            }
        }
        check(session_->cl.ReleaseProgram(native_), "clReleaseProgram");
    }

    // One kernel object for each name and calling thread, which lives as long as the program. Arguments belong to the
    // kernel object, and OpenCL does not set them on two threads at once: each thread asks for its own.
    cl_kernel GetOrCreateKernel(const std::string &kernel_name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto named = kernels_.find(kernel_name);
        if (named != kernels_.end()) {
            const auto found = named->second.find(std::this_thread::get_id());
            if (found != named->second.end()) return found->second;
        }
        cl_int error = CL_SUCCESS;
        const cl_kernel kernel = session_->cl.CreateKernel(native_, kernel_name.c_str(), &error);
        if (error == detail::INVALID_KERNEL_NAME) {
            throw OpenCLError("the program has no kernel `" + kernel_name + "`; it has: " + kernel_names(), error);
        }
        CheckCLError(error, "clCreateKernel(" + kernel_name + ")");
        return kernels_[kernel_name][std::this_thread::get_id()] = kernel;
    }
    cl_program GetProgram() const { return native_; }
    // Whether a kernel of this name was created already.
    bool HasKernel(const std::string &kernel_name) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return kernels_.count(kernel_name) != 0;
    }
    // Names, on however many threads.
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
    std::map<std::string, std::map<std::thread::id, cl_kernel>> kernels_;
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

} // namespace ManagerOpenCL

#endif
