// A buffer of hipcl, and which side has it. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_MEMORY_HPP
#define HIPCL_MANAGER_OPENCL_MEMORY_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "session.hpp"

namespace ManagerOpenCL {

namespace detail {

// A buffer of hipcl, and whether OpenCL or hipcl has it.
class Memory : public std::enable_shared_from_this<Memory> {
  public:
    Memory(std::shared_ptr<Session> session, std::shared_ptr<KnownQueue> queue, hipcl::Buffer buffer,
           hipcl_access_mode mode, MemoryType type)
        : session_(std::move(session)), queue_(std::move(queue)), buffer_(std::move(buffer)), mode_(mode),
          kernels_write_(type != MemoryType::GPU_READ_ONLY), info_(buffer_.info()) {}
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() {
        try {
            unmap();
            to_hipcl();
        } catch (const std::exception &error) {
            // A device may still use the memory, so it is not freed.
            session_->defer(std::string("a buffer was destroyed and its memory is kept: ") + error.what());
            session_->keep(std::move(buffer_), std::move(access_));
        }
        for (const cl_mem object : {external_, object_}) {
            if (object != nullptr) session_->order->registry.forget(object);
        }
    }
    // After the constructor, for memory of another owner, who may show it elsewhere, and have enqueued commands on it.
    void begin(cl_mem external) {
        session_->order->registry.show(entry_, shared_from_this(), Bytes::of(session_->cl, external), external);
        external_ = external;
        session_->order->begin_after_program(shown(), queue());
    }
    // For a further wrapper, with a type and a queue of its own: that queue is known as long as this lives.
    void wrap_again(MemoryType type, std::shared_ptr<KnownQueue> queue_too) {
        if (type != MemoryType::GPU_READ_ONLY) kernels_write_ = true;
        {
            const std::lock_guard<std::mutex> lock(lending_);
            const bool is_known = std::count(queues_too_.begin(), queues_too_.end(), queue_too) != 0;
            if (queue_too != queue_ && !is_known) queues_too_.push_back(std::move(queue_too));
        }
        session_->order->begin_after_program(shown(), queue());
    }

    std::size_t bytes() const noexcept { return info_.bytes; }
    hipcl_route route() const noexcept { return info_.route; }
    const std::shared_ptr<Session> &session() const noexcept { return session_; }
    cl_command_queue queue() const noexcept { return queue_->raw; }
    Use kernel_use() const { return {shown(), kernels_write_}; }
    bool is_mapped() const noexcept { return is_mapped_; }

    // Gives the memory to OpenCL for a command, whose name is for the error if the host has it.
    void take_for(const char *operation) {
        check_not_mapped(operation);
        to_opencl();
    }

    // OpenCL's object. The memory is OpenCL's from here on.
    cl_mem object() {
        to_opencl();
        if (object_ == nullptr) {
            throw OpenCLError("the memory has no cl_mem on its route; use GetSVMPointer() or SetAsKernelArg()");
        }
        return object_;
    }
    // OpenCL's pointer; null where it has only an object.
    void *pointer() {
        to_opencl();
        return pointer_;
    }
    void set_argument(cl_kernel kernel, cl_uint index) {
        not_null(kernel, "the kernel");
        to_opencl();
        Order &order = *session_->order;
        const std::lock_guard<std::mutex> lock(order.launching);
        // The object where there is one: no kernel then sees both kinds, which NVIDIA refuses.
        if (object_ != nullptr) {
            CheckCLError(session_->cl.SetKernelArg(kernel, index, sizeof object_, &object_), "clSetKernelArg");
        } else {
            CheckCLError(session_->cl.SetKernelArgSVMPointer(kernel, index, pointer_), "clSetKernelArgSVMPointer");
        }
        order.arguments.set(kernel, index, {weak_from_this(), kernel_use()});
    }

    // hipcl's object. The memory is hipcl's from here on.
    hipcl::Buffer &shared() {
        check_not_mapped("GetSharedBuffer");
        // hipcl orders its own accesses to common bytes, but not those that are left open.
        for (const auto &other : others()) other->to_hipcl();
        to_hipcl();
        return buffer_;
    }

    // Enqueues a transfer, in the order of the calls. The bytes stay where they are until the event is complete.
    EventPtr write(std::size_t offset, const void *data, std::size_t size) {
        const char *const operation = "Write";
        check_range(offset, size, data, operation);
        if (mode_ != HIPCL_ACCESS_WRITE) throw OpenCLError("Write: the owner made the buffer read-only (CL_MEM_READ_ONLY)");
        take_for(operation);
        EventPtr event = enqueued(operation, true, [&](cl_uint count, const cl_event *waits, cl_event *made) {
            if (pointer_ == nullptr) {
                return session_->cl.EnqueueWriteBuffer(queue(), object_, 0, offset, size, data, count, waits, made);
            }
            return session_->cl.EnqueueSVMMemcpy(queue(), 0, static_cast<char *>(pointer_) + offset, data, size, count,
                                                 waits, made);
        });
        session_->count_input(size);
        return event;
    }
    EventPtr read(std::size_t offset, void *data, std::size_t size) {
        const char *const operation = "Read";
        check_range(offset, size, data, operation);
        take_for(operation);
        EventPtr event = enqueued(operation, false, [&](cl_uint count, const cl_event *waits, cl_event *made) {
            if (pointer_ == nullptr) {
                return session_->cl.EnqueueReadBuffer(queue(), object_, 0, offset, size, data, count, waits, made);
            }
            return session_->cl.EnqueueSVMMemcpy(queue(), 0, data, static_cast<const char *>(pointer_) + offset, size,
                                                 count, waits, made);
        });
        session_->count_result(size);
        return event;
    }

    // Lets the host use the pointer. On a GPU with its own memory this moves the bytes, and counts.
    void map(bool write, bool read) {
        if (is_mapped_) return;
        take_for("Map");
        if (pointer_ == nullptr) throw OpenCLError("Map: OpenCL has no pointer on this route; use Write() and Read()");
        const cl_map_flags flags = (write ? MAP_WRITE : 0) | (read ? MAP_READ : 0);
        enqueued("Map", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMMap(queue(), 0, flags, pointer_, bytes(), count, waits, event);
        })->wait();
        if (read) session_->count_result(bytes());
        is_mapped_ = true;
        is_written_ = write;
    }
    void unmap() {
        if (!is_mapped_) return;
        enqueued("Unmap", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMUnmap(queue(), pointer_, count, waits, event);
        })->wait();
        if (is_written_) session_->count_input(bytes());
        is_mapped_ = false;
    }

  private:
    // All bytes that another object may show by now.
    BytesPtr shown() const { return session_->order->registry.bytes(*entry_); }
    // The memories that have some of the same bytes; mostly none.
    Memories others() const { return session_->order->registry.others(*entry_); }

    void to_opencl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (access_) return;
        hipcl::Access access = buffer_.begin(session_->lending, mode_);
        // Earlier work of HIP on the bytes is done then, by whatever buffer, so that every queue may use the memory.
        session_->lending.finish();
        const cl_mem object = optional<cl_mem>(access, hipcl_access_cl_mem);
        void *const pointer = optional<void *>(access, hipcl_access_pointer);
        // The program can make further objects over the memory from here on.
        Bytes bytes_too;
        if (object != nullptr && object != object_ && object != external_) bytes_too = Bytes::of(session_->cl, object);
        if (pointer != nullptr && pointer != pointer_) bytes_too.add(Bytes::at(pointer, bytes()));
        if (!bytes_too.is_empty()) session_->order->registry.show(entry_, shared_from_this(), bytes_too, object);
        object_ = object;
        pointer_ = pointer;
        access_ = std::move(access);
    }

    void to_hipcl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (!access_) return;
        session_->finish_all();
        session_->order->forget(*shown());
        access_.end();
    }

    // What an access has only on some routes.
    template <class T> static T optional(const hipcl::Access &access, hipcl_status (*get)(hipcl_access, T *)) {
        T value = nullptr;
        const hipcl_status status = get(access.get(), &value);
        if (status != HIPCL_SUCCESS && status != HIPCL_ERROR_NOT_SUPPORTED) throw hipcl::Error::last(status);
        return value;
    }

    void check_range(std::size_t offset, std::size_t size, const void *data, const char *operation) const {
        not_null(data, operation);
        if (offset > bytes() || size > bytes() - offset) {
            throw OpenCLError(std::string(operation) + ": bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + size) + " of a buffer of " + std::to_string(bytes()) + " bytes");
        }
        if (info_.route == HIPCL_ROUTE_HIP_POINTER || info_.route == HIPCL_ROUTE_MANAGED) {
            throw OpenCLError(std::string(operation) + ": the memory is HIP's, which OpenCL's copies do not know; use "
                              "GetSharedBuffer().upload_at() and download_at()");
        }
    }

    void check_not_mapped(const char *operation) {
        bool is_mapped = is_mapped_;
        for (const auto &other : others()) is_mapped = is_mapped || other->is_mapped_;
        if (is_mapped) throw OpenCLError(std::string(operation) + ": the buffer is mapped; call Unmap() first");
    }

    template <class Enqueue> EventPtr enqueued(const char *operation, bool writes, Enqueue enqueue) {
        const std::lock_guard<std::mutex> lock(session_->order->launching);
        return session_->order->enqueue(operation, queue(), {{shown(), writes}}, Theirs::ON_GIVEN_QUEUES,
                                        enqueue);
    }

    std::shared_ptr<Session> session_;
    std::shared_ptr<KnownQueue> queue_;
    hipcl::Buffer buffer_;
    hipcl_access_mode mode_;
    std::atomic<bool> kernels_write_;
    hipcl_buffer_info info_;
    const std::shared_ptr<Registry::Entry> entry_ = std::make_shared<Registry::Entry>();
    // Who has the memory.
    std::mutex lending_;
    hipcl::Access access_;
    std::vector<std::shared_ptr<KnownQueue>> queues_too_;
    cl_mem external_ = nullptr;
    cl_mem object_ = nullptr;
    void *pointer_ = nullptr;
    std::atomic<bool> is_mapped_{false};
    bool is_written_ = false;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
