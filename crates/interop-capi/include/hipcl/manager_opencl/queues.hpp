// The queues that commands on a context's memory may run on. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_QUEUES_HPP
#define HIPCL_MANAGER_OPENCL_QUEUES_HPP

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "event.hpp"

namespace ManagerOpenCL {

namespace detail {

class Queues;

// A queue that hand-offs to HIP wait for, as long as this lives.
class KnownQueue {
  public:
    KnownQueue(hipcl::Queue handle, cl_command_queue raw, std::weak_ptr<Queues> queues)
        : handle(std::move(handle)), raw(raw), queues_(std::move(queues)) {}
    KnownQueue(const KnownQueue &) = delete;
    KnownQueue &operator=(const KnownQueue &) = delete;
    // What is on the queue stays known.
    inline ~KnownQueue();

    hipcl::Queue handle;
    const cl_command_queue raw;
    // Whether the program has it, and may enqueue commands of its own: transfers wait for those.
    std::atomic<bool> is_given{false};
    // Whether it is the program's own queue: launches wait for its commands too. For a queue of the pool they do not,
    // or the launches of this header, which run there, would run one by one.
    std::atomic<bool> is_foreign{false};

  private:
    std::weak_ptr<Queues> queues_;
};

// Whose commands are waited for, beside those of this header.
enum class Theirs {
    ON_FOREIGN_QUEUES, // of the program, on its own queues
    ON_GIVEN_QUEUES    // and on those of the pool that it took
};

class Queues : public std::enable_shared_from_this<Queues> {
  public:
    explicit Queues(std::shared_ptr<const OpenCL> cl) : cl_(std::move(cl)) {}
    Queues(const Queues &) = delete;
    Queues &operator=(const Queues &) = delete;
    ~Queues() {
        for (const EventPtr &event : left_) {
            try {
                // The next one for this context does not know of it.
                event->wait();
            } catch (const std::exception &) {
                // The command has failed, and its queue is gone.
            }
        }
    }

    std::shared_ptr<KnownQueue> add(hipcl::Queue handle, cl_command_queue raw) {
        auto queue = std::make_shared<KnownQueue>(std::move(handle), raw, weak_from_this());
        const std::lock_guard<std::mutex> lock(mutex_);
        queues_.erase(std::remove_if(queues_.begin(), queues_.end(), [](const auto &weak) { return weak.expired(); }),
                      queues_.end());
        queues_.push_back(queue);
        return queue;
    }
    // Null if it is not known.
    std::shared_ptr<KnownQueue> find(cl_command_queue raw) const {
        for (const auto &queue : living()) {
            if (queue->raw == raw) return queue;
        }
        return nullptr;
    }

    // Waits for everything on all queues.
    void finish() {
        for (const auto &queue : living()) queue->handle.finish();
        for (const EventPtr &event : left()) event->wait();
    }
    // What the program has enqueued by now on other queues than `own`, which is in order anyway.
    void add_waits(cl_command_queue own, Theirs theirs, Waits &waits) {
        for (const auto &queue : living()) {
            const bool counts = theirs == Theirs::ON_GIVEN_QUEUES ? queue->is_given : queue->is_foreign;
            if (counts && queue->raw != own) waits.add(marked(cl_, queue->raw));
        }
        for (const EventPtr &event : left()) waits.add(event);
    }

  private:
    friend class KnownQueue;
    std::vector<std::shared_ptr<KnownQueue>> living() const {
        std::vector<std::shared_ptr<KnownQueue>> living;
        const std::lock_guard<std::mutex> lock(mutex_);
        living.reserve(queues_.size());
        for (const auto &weak : queues_) {
            if (auto queue = weak.lock()) living.push_back(std::move(queue));
        }
        return living;
    }
    void leave(cl_command_queue raw) {
        auto event = marked(cl_, raw);
        const std::lock_guard<std::mutex> lock(mutex_);
        left_.push_back(std::move(event));
    }
    std::vector<EventPtr> left() {
        const std::lock_guard<std::mutex> lock(mutex_);
        // A queue that is gone has no user who could mend a failure.
        const auto is_over = [](const EventPtr &event) { return event->is_done() || event->has_failed(); };
        left_.erase(std::remove_if(left_.begin(), left_.end(), is_over), left_.end());
        return left_;
    }

    std::shared_ptr<const OpenCL> cl_;
    mutable std::mutex mutex_;
    std::vector<std::weak_ptr<KnownQueue>> queues_;
    // The ends of what was on queues that are gone.
    std::vector<EventPtr> left_;
};

KnownQueue::~KnownQueue() {
    try {
        // No wait here: the program may be what the queue waits for.
        const auto queues = queues_.lock();
        queues ? queues->leave(raw) : handle.finish();
    } catch (const std::exception &) {
        // A queue that refuses a marker runs nothing any more.
    }
}

} // namespace detail

} // namespace ManagerOpenCL

#endif
