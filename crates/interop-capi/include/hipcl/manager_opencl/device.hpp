// The device, its context and its queues. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_DEVICE_HPP
#define HIPCL_MANAGER_OPENCL_DEVICE_HPP

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "launch.hpp"

namespace ManagerOpenCL {

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

} // namespace ManagerOpenCL

#endif
