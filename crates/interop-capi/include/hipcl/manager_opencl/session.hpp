// The bridge that everything runs on, and which one a context has. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_SESSION_HPP
#define HIPCL_MANAGER_OPENCL_SESSION_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "order.hpp"

namespace ManagerOpenCL {

namespace detail {

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
        session->main->is_foreign = true;
        return session;
    }

    explicit Session(hipcl::Bridge opened)
        : bridge(std::move(opened)), native(bridge.native()), order(Order::of(native)), cl(*order->cl),
          lending(bridge.queue()), main(known_main()) {
        best_route_ = bridge.alloc<float>(1).info().route;
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    hipcl::Bridge bridge;
    const hipcl_native_handles native;
    const std::shared_ptr<Order> order;
    const OpenCL &cl;
    // Accesses for OpenCL begin on this queue, which runs nothing else.
    hipcl::Queue lending;
    const std::shared_ptr<KnownQueue> main;

    // The route of memory that is allocated without a wish.
    hipcl_route best_route() const noexcept { return best_route_; }

    std::shared_ptr<KnownQueue> new_queue() {
        hipcl::Queue handle = bridge.queue();
        const cl_command_queue raw = handle.native();
        return order->queues->add(std::move(handle), raw);
    }

    // Hand-offs wait for this queue as long as the result lives.
    std::shared_ptr<KnownQueue> known(cl_command_queue raw) {
        not_null(raw, "the command queue");
        if (auto queue = order->queues->find(raw)) return queue;
        auto queue = order->queues->add(bridge.adopt(raw), raw);
        queue->is_given = queue->is_foreign = true;
        return queue;
    }
    // The main queue, for the program.
    cl_command_queue give_main() noexcept {
        main->is_given = true;
        return main->raw;
    }

    // Waits for everything that was enqueued.
    void finish_all() { order->queues->finish(); }

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

  private:
    // Another bridge on the context may have the queue already.
    std::shared_ptr<KnownQueue> known_main() {
        auto queue = order->queues->find(native.queue);
        return queue ? queue : order->queues->add(bridge.main_queue(), native.queue);
    }

    hipcl_route best_route_ = HIPCL_ROUTE_AUTO;
    std::atomic<std::uint64_t> input_{0}, result_{0}, data_set_{0};
    std::mutex mutex_;
    std::string deferred_;
};

// What is one in a process.
struct Process {
    std::mutex mutex;
    std::shared_ptr<Session> session;
    DeviceType type = DeviceType::GPU;
    // Contexts of others, by ExternalContextManager.
    std::map<cl_context, std::shared_ptr<Session>> others;
};

// Never destroyed: at the end of the process the drivers may be gone before it.
inline Process &process() {
    static Process *const one = new Process;
    return *one;
}

inline std::shared_ptr<Session> session_if_open() {
    const std::lock_guard<std::mutex> lock(process().mutex);
    return process().session;
}

inline std::shared_ptr<Session> session() {
    auto open = session_if_open();
    if (!open) throw OpenCLError("OpenCL is not initialised; call OpenCLComputeEngine::Initialize() first");
    return open;
}

// The session of a context, if it is this program's own or registered.
inline std::shared_ptr<Session> session_of(cl_context context) {
    not_null(context, "the context");
    const std::lock_guard<std::mutex> lock(process().mutex);
    if (process().session && process().session->native.context == context) return process().session;
    const auto found = process().others.find(context);
    if (found != process().others.end()) return found->second;
    throw OpenCLError("the context is not this program's own: pass it to ExternalContextManager::RegisterExternalContext() "
                      "or OpenCLCore::InitializeFromContext(), or copy with BufferBridge::CopyBetweenContexts()");
}

inline cl_context context_of(const OpenCL &cl, cl_mem buffer) {
    not_null(buffer, "the buffer");
    return queried<cl_context>(cl.GetMemObjectInfo, buffer, MEM_CONTEXT, "clGetMemObjectInfo(CL_MEM_CONTEXT)");
}

inline std::string device_text(const Session &session, cl_uint what) {
    const cl_device_id device = session.native.device;
    std::size_t bytes = 0;
    CheckCLError(session.cl.GetDeviceInfo(device, what, 0, nullptr, &bytes), "clGetDeviceInfo");
    std::string text(bytes, '\0');
    if (bytes != 0) CheckCLError(session.cl.GetDeviceInfo(device, what, bytes, &text[0], nullptr), "clGetDeviceInfo");
    const std::size_t end = text.find('\0');
    return end == std::string::npos ? text : text.substr(0, end);
}

template <class T> T device_value(const Session &session, cl_uint what) {
    return queried<T>(session.cl.GetDeviceInfo, session.native.device, what, "clGetDeviceInfo");
}

} // namespace detail

} // namespace ManagerOpenCL

#endif
