// A buffer of hipcl, and which side has it. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_MEMORY_HPP
#define HIPCL_MANAGER_OPENCL_MEMORY_HPP

#include <array>
#include <cstddef>
#include <map>
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
            to_hipcl();
        } catch (const std::exception &error) {
            // A device may still use the memory, so it is not freed.
            session_->defer(std::string("a buffer was destroyed and its memory is kept: ") + error.what());
            session_->keep(std::move(buffer_), std::move(access_));
        }
        if (object_ != nullptr) session_->forget(object_);
    }

    std::size_t bytes() const noexcept { return info_.bytes; }
    hipcl_route route() const noexcept { return info_.route; }
    const std::shared_ptr<Session> &session() const noexcept { return session_; }
    cl_command_queue queue() const noexcept { return queue_->raw; }
    bool kernels_write() const noexcept { return kernels_write_; }
    bool is_mapped() const noexcept { return is_mapped_; }

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
        const std::lock_guard<std::mutex> lock(session_->launching);
        // The object where there is one: no kernel then sees both kinds, which NVIDIA refuses.
        if (object_ != nullptr) {
            CheckCLError(session_->cl.SetKernelArg(kernel, index, sizeof object_, &object_), "clSetKernelArg");
        } else {
            CheckCLError(session_->cl.SetKernelArgSVMPointer(kernel, index, pointer_), "clSetKernelArgSVMPointer");
        }
    }

    // hipcl's object. The memory is hipcl's from here on.
    hipcl::Buffer &shared() {
        if (is_mapped_) throw OpenCLError("GetSharedBuffer: the buffer is mapped; call Unmap() first");
        to_hipcl();
        return buffer_;
    }

    // Enqueues a transfer, in the order of the calls. The bytes stay where they are until the event is complete.
    Event write(std::size_t offset, const void *data, std::size_t size) {
        const char *const operation = "Write";
        check_range(offset, size, data, operation);
        if (mode_ != HIPCL_ACCESS_WRITE) throw OpenCLError("Write: the owner made the buffer read-only (CL_MEM_READ_ONLY)");
        to_opencl();
        Event event = enqueued(operation, true, [&](cl_uint count, const cl_event *waits, cl_event *made) {
            if (pointer_ == nullptr) {
                return session_->cl.EnqueueWriteBuffer(queue(), object_, 0, offset, size, data, count, waits, made);
            }
            return session_->cl.EnqueueSVMMemcpy(queue(), 0, static_cast<char *>(pointer_) + offset, data, size, count,
                                                 waits, made);
        });
        session_->count_input(size);
        return event;
    }
    Event read(std::size_t offset, void *data, std::size_t size) {
        const char *const operation = "Read";
        check_range(offset, size, data, operation);
        to_opencl();
        Event event = enqueued(operation, false, [&](cl_uint count, const cl_event *waits, cl_event *made) {
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
        to_opencl();
        if (pointer_ == nullptr) throw OpenCLError("Map: OpenCL has no pointer on this route; use Write() and Read()");
        const cl_map_flags flags = (write ? MAP_WRITE : 0) | (read ? MAP_READ : 0);
        enqueued("Map", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMMap(queue(), 0, flags, pointer_, bytes(), count, waits, event);
        }).wait();
        if (read) session_->count_result(bytes());
        is_mapped_ = true;
        is_written_ = write;
    }
    void unmap() {
        if (!is_mapped_) return;
        enqueued("Unmap", true, [&](cl_uint count, const cl_event *waits, cl_event *event) {
            return session_->cl.EnqueueSVMUnmap(queue(), pointer_, count, waits, event);
        }).wait();
        if (is_written_) session_->count_input(bytes());
        is_mapped_ = false;
    }

    // What a command waits for, in the order of the calls: a reader for the last writer, a writer also for all readers since.
    // The caller holds `launching`, from here until it has recorded the command.
    void add_waits(bool writes, std::vector<cl_event> &waits) const {
        if (writer_.get() != nullptr) waits.push_back(writer_.get());
        if (!writes) return;
        for (const auto &reader : readers_) waits.push_back(reader.second.get());
    }
    void record(bool writes, cl_command_queue queue, const Event &event) {
        if (writes) {
            readers_.clear();
            writer_ = event.share();
        } else {
            // Queues are in order, so the last of each is enough.
            readers_[queue] = event.share();
        }
    }
    // For the commands of this header on the memory.
    void finish() {
        std::vector<Event> events;
        {
            const std::lock_guard<std::mutex> lock(session_->launching);
            events.push_back(writer_.share());
            for (const auto &reader : readers_) events.push_back(reader.second.share());
        }
        for (const Event &event : events) event.wait();
    }

  private:
    void to_opencl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (access_) return;
        hipcl::Access access = buffer_.begin(session_->lending, mode_);
        // Earlier work of HIP is done then, so that every queue may use the memory.
        session_->lending.finish();
        const cl_mem object = optional<cl_mem>(access, hipcl_access_cl_mem);
        pointer_ = optional<void *>(access, hipcl_access_pointer);
        if (object != nullptr && object != object_) session_->remember(object, shared_from_this());
        object_ = object;
        access_ = std::move(access);
    }

    void to_hipcl() {
        const std::lock_guard<std::mutex> lock(lending_);
        if (!access_) return;
        session_->finish_all();
        {
            const std::lock_guard<std::mutex> order(session_->launching);
            writer_ = Event();
            readers_.clear();
        }
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
        if (is_mapped_) throw OpenCLError(std::string(operation) + ": the buffer is mapped; call Unmap() first");
        if (info_.route == HIPCL_ROUTE_HIP_POINTER || info_.route == HIPCL_ROUTE_MANAGED) {
            throw OpenCLError(std::string(operation) + ": the memory is HIP's, which OpenCL's copies do not know; use "
                              "GetSharedBuffer().upload_at() and download_at()");
        }
    }

    // Enqueues behind the commands that it conflicts with, and records it.
    template <class Enqueue> Event enqueued(const char *operation, bool writes, Enqueue enqueue) {
        const std::lock_guard<std::mutex> lock(session_->launching);
        std::vector<cl_event> waits;
        add_waits(writes, waits);
        // And behind what the program has enqueued itself.
        std::vector<Event> marks;
        for (const auto &other : session_->queues()) {
            if (!other->is_given || other->raw == queue()) continue;
            cl_event mark = nullptr;
            CheckCLError(session_->cl.EnqueueMarkerWithWaitList(other->raw, 0, nullptr, &mark), "clEnqueueMarkerWithWaitList");
            marks.emplace_back(session_, mark);
            waits.push_back(mark);
            CheckCLError(session_->cl.Flush(other->raw), "clFlush");
        }
        cl_event raw = nullptr;
        const cl_event *const list = waits.empty() ? nullptr : waits.data();
        CheckCLError(enqueue(static_cast<cl_uint>(waits.size()), list, &raw), operation);
        Event event(session_, raw);
        record(writes, queue(), event);
        // A command on another queue may wait for it.
        CheckCLError(session_->cl.Flush(queue()), "clFlush");
        return event;
    }

    std::shared_ptr<Session> session_;
    std::shared_ptr<KnownQueue> queue_;
    hipcl::Buffer buffer_;
    hipcl_access_mode mode_;
    bool kernels_write_;
    hipcl_buffer_info info_;
    // Who has the memory.
    std::mutex lending_;
    hipcl::Access access_;
    cl_mem object_ = nullptr;
    void *pointer_ = nullptr;
    bool is_mapped_ = false;
    bool is_written_ = false;
    // In the order of the calls. Guarded by `launching`.
    Event writer_;
    std::map<cl_command_queue, Event> readers_;
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

// A launch behind the last commands on its buffers.
inline Event launched(const std::shared_ptr<Session> &session, cl_command_queue queue, cl_kernel kernel,
                      const std::vector<cl_mem> &buffers, const std::array<std::size_t, 3> &global,
                      const std::array<std::size_t, 3> &local) {
    not_null(kernel, "the kernel");
    std::vector<cl_mem> objects;
    std::vector<std::shared_ptr<Memory>> memories;
    for (const cl_mem buffer : buffers) {
        not_null(buffer, "a buffer of the launch");
        auto memory = session->memory_of(buffer);
        objects.push_back(memory ? memory->object() : buffer);
        if (!memory) continue;
        if (memory->is_mapped()) throw OpenCLError("a buffer of the launch is mapped; call Unmap() first");
        memories.push_back(std::move(memory));
    }
    cl_uint dimensions = 3;
    while (dimensions > 1 && global[dimensions - 1] <= 1) dimensions--;
    if (global[0] == 0) throw std::invalid_argument("the launch has 0 work-items");
    const std::size_t *const groups = local[0] == 0 ? nullptr : local.data();

    const std::lock_guard<std::mutex> lock(session->launching);
    for (std::size_t i = 0; i < objects.size(); i++) {
        CheckCLError(session->cl.SetKernelArg(kernel, static_cast<cl_uint>(i), sizeof(cl_mem), &objects[i]),
                     "clSetKernelArg(" + std::to_string(i) + ")");
    }
    std::vector<cl_event> waits;
    for (const auto &memory : memories) memory->add_waits(memory->kernels_write(), waits);
    cl_event raw = nullptr;
    CheckCLError(session->cl.EnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, global.data(), groups,
                                                  static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(),
                                                  &raw),
                 "clEnqueueNDRangeKernel");
    Event event(session, raw);
    for (const auto &memory : memories) memory->record(memory->kernels_write(), queue, event);
    CheckCLError(session->cl.Flush(queue), "clFlush");
    return event;
}

} // namespace detail

} // namespace ManagerOpenCL

#endif
