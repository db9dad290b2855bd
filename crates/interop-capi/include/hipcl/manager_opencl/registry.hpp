// The buffers of a context, by their objects and by their bytes. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_REGISTRY_HPP
#define HIPCL_MANAGER_OPENCL_REGISTRY_HPP

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bytes.hpp"

namespace ManagerOpenCL {

namespace detail {

class Memory;
using Memories = std::vector<std::shared_ptr<Memory>>;

// Which memory a cl_mem is, and which memories have common bytes.
class Registry {
  public:
    Registry() = default;
    Registry(const Registry &) = delete;
    Registry &operator=(const Registry &) = delete;

    // A memory's bytes, as far as they have been shown to anyone, and the other memories that have some of them.
    class Entry {
        friend class Registry;
        std::weak_ptr<Memory> memory;
        BytesPtr bytes = std::make_shared<const Bytes>();
        std::vector<std::weak_ptr<Memory>> others;
    };

    // From here on, other objects can be made over these bytes of the memory. The object may be null.
    void show(const std::shared_ptr<Entry> &entry, const std::shared_ptr<Memory> &memory, const Bytes &bytes,
              cl_mem object) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (object != nullptr) objects_[object] = memory;
        auto all = std::make_shared<Bytes>(*entry->bytes);
        all->add(bytes);
        entry->bytes = std::move(all);
        entry->memory = memory;
        bool is_new = true;
        entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [](const auto &weak) { return weak.expired(); }),
                       entries_.end());
        for (const auto &weak : entries_) {
            const auto other = weak.lock();
            if (other == entry) is_new = false;
            if (!other || other == entry || !other->bytes->meets(*entry->bytes)) continue;
            relate(entry->others, other->memory);
            relate(other->others, memory);
        }
        if (is_new) entries_.push_back(entry);
    }
    void forget(cl_mem object) noexcept {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = objects_.find(object);
        if (found != objects_.end() && found->second.expired()) objects_.erase(found);
    }

    BytesPtr bytes(const Entry &entry) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return entry.bytes;
    }
    Memories others(const Entry &entry) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return living(entry.others);
    }
    // The memory of a cl_mem; null if no buffer of this header has it.
    std::shared_ptr<Memory> memory_of(cl_mem object) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = objects_.find(object);
        return found == objects_.end() ? nullptr : found->second.lock();
    }
    Memories meeting(const Bytes &bytes) const {
        std::vector<std::weak_ptr<Memory>> found;
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto &weak : entries_) {
            const auto entry = weak.lock();
            if (entry && entry->bytes->meets(bytes)) found.push_back(entry->memory);
        }
        return living(found);
    }

  private:
    static void relate(std::vector<std::weak_ptr<Memory>> &others, const std::weak_ptr<Memory> &memory) {
        const auto is_gone_or_it = [&](const std::weak_ptr<Memory> &known) {
            return known.expired() || (!known.owner_before(memory) && !memory.owner_before(known));
        };
        others.erase(std::remove_if(others.begin(), others.end(), is_gone_or_it), others.end());
        others.push_back(memory);
    }
    static Memories living(const std::vector<std::weak_ptr<Memory>> &memories) {
        Memories living;
        for (const auto &weak : memories) {
            if (auto memory = weak.lock()) living.push_back(std::move(memory));
        }
        return living;
    }

    mutable std::mutex mutex_;
    std::map<cl_mem, std::weak_ptr<Memory>> objects_;
    std::vector<std::weak_ptr<Entry>> entries_;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
