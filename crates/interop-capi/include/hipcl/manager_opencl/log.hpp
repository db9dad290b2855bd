// The commands that may still run, and which of them a new one waits for. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_LOG_HPP
#define HIPCL_MANAGER_OPENCL_LOG_HPP

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "event.hpp"

namespace ManagerOpenCL {

namespace detail {

// What a command does with some bytes.
struct Use {
    BytesPtr bytes;
    bool writes;
};

// The commands of one context that may still run, by the bytes that they use. All queues are in order.
class Log {
  public:
    Log() = default;
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;

    // Readers run side by side; every other command waits for the earlier ones on its bytes.
    void add_waits(const Use &use, Waits &waits) const {
        for (const Entry &entry : entries_) {
            if ((use.writes || entry.use.writes) && use.bytes->meets(*entry.use.bytes)) waits.add(entry.event);
        }
    }

    // Room for record(), which cannot fail then.
    void reserve(std::size_t uses) {
        if (entries_.size() >= due_) {
            erase([](const Entry &entry) { return entry.event->is_done(); });
            due_ = std::max<std::size_t>(64, 2 * entries_.size());
        }
        entries_.reserve(entries_.size() + uses);
    }
    // A command that was enqueued behind its waits.
    void record(const std::vector<Use> &uses, cl_command_queue queue, const EventPtr &event) noexcept {
        // A later command that would wait for one of these waits for the new command, which runs after it.
        for (const Use &use : uses) {
            erase([&](const Entry &entry) {
                const bool is_after = use.writes || (entry.queue == queue && !entry.use.writes);
                return is_after && use.bytes->covers(*entry.use.bytes);
            });
        }
        for (const Use &use : uses) entries_.push_back({use, queue, event});
    }
    // All commands on these bytes are done.
    void forget(const Bytes &bytes) noexcept {
        erase([&](const Entry &entry) { return bytes.meets(*entry.use.bytes); });
    }

  private:
    struct Entry {
        Use use;
        cl_command_queue queue;
        EventPtr event;
    };
    template <class Is> void erase(Is is) noexcept {
        entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is), entries_.end());
    }

    std::vector<Entry> entries_;
    // How many entries there are when those that are done are erased next.
    std::size_t due_ = 64;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
