// Events, and what a command waits for. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_EVENT_HPP
#define HIPCL_MANAGER_OPENCL_EVENT_HPP

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "opencl.hpp"

namespace ManagerOpenCL {

namespace detail {

// An event of OpenCL. It is made before its command is enqueued, so that nothing can fail between that and its record.
class Event {
  public:
    explicit Event(std::shared_ptr<const OpenCL> cl) noexcept : cl_(std::move(cl)) {}
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event() {
        if (raw_ != nullptr) (void)cl_->ReleaseEvent(raw_);
    }

    // For the call that enqueues the command.
    cl_event *place() noexcept { return &raw_; }
    cl_event get() const noexcept { return raw_; }
    void wait() const {
        if (raw_ != nullptr) CheckCLError(cl_->WaitForEvents(1, &raw_), "clWaitForEvents");
    }
    // Whether the command is done, so that nothing need wait for it any more. A failed one never is: who waits for it
    // fails.
    bool is_done() const noexcept {
        // The query is no synchronisation point, so that other queues might not see the result; the wait, which returns
        // at once, is one.
        return state() == 0 && cl_->WaitForEvents(1, &raw_) == CL_SUCCESS;
    }
    bool has_failed() const noexcept { return state() < 0; }
    // A reference for the program, which releases it.
    cl_event given() const {
        const cl_int error = cl_->RetainEvent(raw_);
        // The program could not wait for the command, whose host memory it may free.
        if (error != CL_SUCCESS) (void)cl_->WaitForEvents(1, &raw_);
        CheckCLError(error, "clRetainEvent");
        return raw_;
    }

  private:
    // 0 when the command is complete, negative if it failed.
    cl_int state() const noexcept {
        cl_int state = 1;
        const cl_int error = cl_->GetEventInfo(raw_, EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
        return error == CL_SUCCESS ? state : 1;
    }

    std::shared_ptr<const OpenCL> cl_;
    cl_event raw_ = nullptr;
};

using EventPtr = std::shared_ptr<Event>;

// Complete when everything that is on the queue by now is done.
inline EventPtr marked(const std::shared_ptr<const OpenCL> &cl, cl_command_queue queue) {
    auto event = std::make_shared<Event>(cl);
    CheckCLError(cl->EnqueueMarkerWithWaitList(queue, 0, nullptr, event->place()), "clEnqueueMarkerWithWaitList");
    // A command on another queue may wait for it.
    CheckCLError(cl->Flush(queue), "clFlush");
    return event;
}

// What a command waits for. It keeps the events alive.
class Waits {
  public:
    void add(const EventPtr &event) {
        if (std::count(raw_.begin(), raw_.end(), event->get()) != 0) return;
        events_.push_back(event);
        raw_.push_back(event->get());
    }
    cl_uint count() const noexcept { return static_cast<cl_uint>(raw_.size()); }
    const cl_event *list() const noexcept { return raw_.empty() ? nullptr : raw_.data(); }
    // Waits for all on the calling thread.
    void wait() const {
        for (const EventPtr &event : events_) event->wait();
    }

  private:
    std::vector<EventPtr> events_;
    std::vector<cl_event> raw_;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
