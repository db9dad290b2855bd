// The order of all commands on the memory of one context. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_ORDER_HPP
#define HIPCL_MANAGER_OPENCL_ORDER_HPP

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "log.hpp"
#include "queues.hpp"
#include "registry.hpp"

namespace ManagerOpenCL {

namespace detail {

// Every command of this header is enqueued here, and waits for
//
//   the log      commands of this header on the same bytes (log.hpp), whatever objects show them (bytes.hpp)
//   the queues   commands that the program has enqueued itself, by markers (queues.hpp)
//
// All bridges on one context share one order: a context may be registered again while buffers of the first time are
// alive.
class Order {
  public:
    explicit Order(std::shared_ptr<const OpenCL> table)
        : cl(std::move(table)), queues(std::make_shared<Queues>(cl)) {}
    Order(const Order &) = delete;
    Order &operator=(const Order &) = delete;

    static std::shared_ptr<Order> of(const hipcl_native_handles &native) {
        struct Orders {
            std::mutex mutex;
            std::map<cl_context, std::weak_ptr<Order>> all;
        };
        // Never destroyed: at the end of the process the drivers may be gone before it.
        static Orders *const orders = new Orders;
        const std::lock_guard<std::mutex> lock(orders->mutex);
        for (auto entry = orders->all.begin(); entry != orders->all.end();) {
            entry = entry->second.expired() ? orders->all.erase(entry) : std::next(entry);
        }
        auto &known = orders->all[native.context];
        auto order = known.lock();
        if (!order) {
            order = std::make_shared<Order>(std::make_shared<const OpenCL>(native.platform, native.device));
            known = order;
        }
        return order;
    }

    const std::shared_ptr<const OpenCL> cl;
    const std::shared_ptr<Queues> queues;
    Registry registry;
    // Guards the arguments of kernels until the launch that uses them, and the order of commands. Nothing waits under
    // it.
    std::mutex launching;
    Arguments arguments;

    // Enqueues a command. The caller holds `launching`.
    template <class Enqueue>
    EventPtr enqueue(const char *operation, cl_command_queue queue, const std::vector<Use> &uses, Theirs theirs,
                     Enqueue enqueue) {
        Waits waits;
        for (const Use &use : uses) log_.add_waits(use, waits);
        queues->add_waits(queue, theirs, waits);
        log_.reserve(uses.size());
        auto event = std::make_shared<Event>(cl);
        CheckCLError(enqueue(waits.count(), waits.list(), event->place()), operation);
        log_.record(uses, queue, event);
        // A command on another queue may wait for it.
        const cl_int error = cl->Flush(queue);
        // The program could not wait for it, and may free its host memory.
        if (error != CL_SUCCESS) (void)cl->WaitForEvents(1, event->place());
        CheckCLError(error, "clFlush");
        return event;
    }

    // Whatever the program has enqueued by now may use these bytes: later commands on them run after it.
    void begin_after_program(const BytesPtr &bytes, cl_command_queue queue) {
        const std::lock_guard<std::mutex> lock(launching);
        enqueue("clEnqueueMarkerWithWaitList", queue, {{bytes, true}}, Theirs::ON_GIVEN_QUEUES,
                [&](cl_uint count, const cl_event *waits, cl_event *made) {
                    return cl->EnqueueMarkerWithWaitList(queue, count, waits, made);
                });
    }
    // Waits for all commands on these bytes, and for those of the program.
    void wait_for(const Bytes &bytes) {
        Waits waits;
        {
            const std::lock_guard<std::mutex> lock(launching);
            log_.add_waits({std::make_shared<const Bytes>(bytes), true}, waits);
            queues->add_waits(nullptr, Theirs::ON_GIVEN_QUEUES, waits);
        }
        waits.wait();
    }
    std::vector<Argument> arguments_from(cl_kernel kernel, cl_uint first) {
        const std::lock_guard<std::mutex> lock(launching);
        return arguments.from(kernel, first);
    }
    void forget(cl_kernel kernel) noexcept {
        const std::lock_guard<std::mutex> lock(launching);
        arguments.forget(kernel);
    }
    // After finish() of all queues, for bytes that HIP gets.
    void forget(const Bytes &bytes) noexcept {
        const std::lock_guard<std::mutex> lock(launching);
        log_.forget(bytes);
    }

  private:
    Log log_;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
