// The bridge that everything runs on, and the queues that hand-offs wait for. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_SESSION_HPP
#define HIPCL_MANAGER_OPENCL_SESSION_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "opencl.hpp"

namespace ManagerOpenCL {

namespace detail {

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

} // namespace detail

} // namespace ManagerOpenCL

#endif
