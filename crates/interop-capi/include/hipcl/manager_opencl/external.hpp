// Queues, buffers and contexts of another owner. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_EXTERNAL_HPP
#define HIPCL_MANAGER_OPENCL_EXTERNAL_HPP

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace ManagerOpenCL {

// A queue that the program enqueues commands of its own on. Hand-offs to HIP, transfers and launches run after those
// commands, as far as they were enqueued while this lives.
class ExternalQueueWrapper {
  public:
    // In order, and of this program's own context or a registered one.
    explicit ExternalQueueWrapper(cl_command_queue external_queue) {
        detail::not_null(external_queue, "the command queue");
        context_ = detail::queried<cl_context>(detail::session()->cl.GetCommandQueueInfo, external_queue,
                                               detail::QUEUE_CONTEXT, "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)");
        session_ = detail::session_of(context_);
        queue_ = session_->known(external_queue);
        queue_->is_given = queue_->is_foreign = true;
    }

    cl_command_queue Get() const { return queue_->raw; }
    cl_context GetContext() const { return context_; }
    void Flush() { CheckCLError(session_->cl.Flush(queue_->raw), "clFlush"); }
    void Finish() { queue_->handle.finish(); }
    // Complete when everything that is on the queue by now is done. The caller releases it.
    cl_event RecordEvent() { return detail::marked(session_->order->cl, queue_->raw)->given(); }
    // What is enqueued from now on runs after the event, which is of the same context.
    void WaitForEvent(cl_event event) {
        detail::not_null(event, "the event");
        CheckCLError(session_->cl.EnqueueBarrierWithWaitList(queue_->raw, 1, &event, nullptr),
                     "clEnqueueBarrierWithWaitList");
    }
    // What is enqueued here from now on runs after what is on the other queue by now. OpenCL has no event for two contexts:
    // if they differ, the calling thread waits.
    void WaitForQueue(cl_command_queue other) {
        detail::not_null(other, "the command queue");
        const auto context = detail::queried<cl_context>(session_->cl.GetCommandQueueInfo, other, detail::QUEUE_CONTEXT,
                                                         "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)");
        if (context != context_) return CheckCLError(session_->cl.Finish(other), "clFinish");
        WaitForEvent(detail::marked(session_->order->cl, other)->get());
    }

  private:
    cl_context context_ = nullptr;
    std::shared_ptr<detail::Session> session_;
    std::shared_ptr<detail::KnownQueue> queue_;
};

namespace detail {

// A queue of a buffer: the caller's, else the session's, else one for this call.
class QueueOf {
  public:
    QueueOf(const std::shared_ptr<Session> &session, const ExternalBufferInfo &info, cl_context context,
            cl_command_queue queue)
        : session_(session), raw_(queue) {
        if (context != nullptr && context != info.context) {
            throw OpenCLError("the buffer belongs to another context than the one that was passed with it");
        }
        if (raw_ != nullptr) return;
        cl_int error = CL_SUCCESS;
        raw_ = own_ = session_->cl.CreateCommandQueue(info.context, info.device, 0, &error);
        CheckCLError(error, "clCreateCommandQueue");
    }
    QueueOf(const QueueOf &) = delete;
    QueueOf &operator=(const QueueOf &) = delete;
    ~QueueOf() {
        if (own_ != nullptr) (void)session_->cl.ReleaseCommandQueue(own_);
    }
    cl_command_queue get() const noexcept { return raw_; }

  private:
    std::shared_ptr<Session> session_;
    cl_command_queue raw_;
    cl_command_queue own_ = nullptr;
};

// The context's order, if a bridge on it is open.
inline std::shared_ptr<Order> order_of(cl_context context) {
    const std::lock_guard<std::mutex> lock(process().mutex);
    const auto other = process().others.find(context);
    if (other != process().others.end()) return other->second->order;
    const auto &session = process().session;
    return session && session->native.context == context ? session->order : nullptr;
}

// That the bytes are OpenCL's, and that the commands of this header on them and those on the program's queues are done.
inline void claim(const OpenCL &cl, const ExternalBufferInfo &info, cl_mem buffer, const char *operation) {
    const auto order = order_of(info.context);
    if (!order) return;
    const Bytes bytes = Bytes::of(cl, buffer);
    for (const auto &memory : order->registry.meeting(bytes)) memory->take_for(operation);
    order->wait_for(bytes);
}

inline void check_size(const ExternalBufferInfo &info, std::size_t offset, std::size_t size, const char *operation) {
    if (offset > info.size_bytes || size > info.size_bytes - offset) {
        throw OpenCLError(std::string(operation) + ": " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                          " of a buffer of " + std::to_string(info.size_bytes) + " bytes");
    }
}

} // namespace detail

// Between host memory and a buffer of any context. All calls wait for the end.
class CLBufferBridge {
  public:
    // The context and the queue may be null: then they are the buffer's own, and a new queue.
    static void CopyFromExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                                 std::size_t offset_bytes, std::size_t size_bytes, void *host_buffer) {
        copy(external_buffer, external_context, external_queue, offset_bytes, size_bytes, host_buffer, true);
    }
    static void CopyFromExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                                 std::size_t size_bytes, void *host_buffer) {
        copy(external_buffer, external_context, external_queue, 0, size_bytes, host_buffer, true);
    }
    static void CopyToExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                               std::size_t offset_bytes, std::size_t size_bytes, const void *host_buffer) {
        // Is read only.
        copy(external_buffer, external_context, external_queue, offset_bytes, size_bytes, const_cast<void *>(host_buffer),
             false);
    }
    static void CopyToExternal(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                               std::size_t size_bytes, const void *host_buffer) {
        CopyToExternal(external_buffer, external_context, external_queue, 0, size_bytes, host_buffer);
    }

    // By the pointer of the shared virtual memory that the buffer is a view of. False, and nothing is done, for a buffer
    // that is none; errors are exceptions.
    static bool TryCopySVM(cl_mem external_buffer, cl_context external_context, cl_command_queue external_queue,
                           std::size_t size_bytes, void *host_buffer, bool read) {
        const auto session = detail::session();
        const ExternalBufferInfo info = ExternalBufferInfo::Query(external_buffer);
        if (!info.is_svm_compatible || session->cl.EnqueueSVMMemcpy == nullptr) return false;
        check(info, 0, size_bytes, host_buffer, read);
        const detail::QueueOf queue(session, info, external_context, external_queue);
        detail::claim(session->cl, info, external_buffer, "TryCopySVM");
        void *const to = read ? host_buffer : info.host_ptr;
        const void *const from = read ? info.host_ptr : host_buffer;
        CheckCLError(session->cl.EnqueueSVMMemcpy(queue.get(), 1, to, from, size_bytes, 0, nullptr, nullptr),
                     "clEnqueueSVMMemcpy");
        count(*session, size_bytes, read);
        return true;
    }

  private:
    static void count(detail::Session &session, std::size_t bytes, bool read) {
        read ? session.count_result(bytes) : session.count_input(bytes);
    }

    static void check(const ExternalBufferInfo &info, std::size_t offset, std::size_t size, const void *host, bool read) {
        detail::not_null(host, "the host memory");
        detail::check_size(info, offset, size, read ? "CopyFromExternal" : "CopyToExternal");
    }

    static void copy(cl_mem buffer, cl_context context, cl_command_queue raw_queue, std::size_t offset, std::size_t size,
                     void *host, bool read) {
        const auto session = detail::session();
        const ExternalBufferInfo info = ExternalBufferInfo::Query(buffer);
        check(info, offset, size, host, read);
        if (size == 0) return;
        const detail::QueueOf queue(session, info, context, raw_queue);
        detail::claim(session->cl, info, buffer, read ? "CopyFromExternal" : "CopyToExternal");
        if (read) {
            CheckCLError(session->cl.EnqueueReadBuffer(queue.get(), buffer, 1, offset, size, host, 0, nullptr, nullptr),
                         "clEnqueueReadBuffer");
        } else {
            CheckCLError(session->cl.EnqueueWriteBuffer(queue.get(), buffer, 1, offset, size, host, 0, nullptr, nullptr),
                         "clEnqueueWriteBuffer");
        }
        count(*session, size, read);
    }
};

// Between two buffers. This copies the data set, and the counters say so.
class BufferBridge {
  public:
    // After what is on both queues by now; waits for the end. In one context on the device, else through host memory, in
    // pieces of at most 8 MiB.
    static void CopyBetweenContexts(cl_mem src, cl_context src_ctx, cl_command_queue src_queue, cl_mem dst,
                                    cl_context dst_ctx, cl_command_queue dst_queue, std::size_t size_bytes) {
        const auto session = detail::session();
        const detail::OpenCL &cl = session->cl;
        const ExternalBufferInfo from = ExternalBufferInfo::Query(src), to = ExternalBufferInfo::Query(dst);
        detail::check_size(from, 0, size_bytes, "CopyBetweenContexts, source");
        detail::check_size(to, 0, size_bytes, "CopyBetweenContexts, destination");
        if (size_bytes == 0) return;
        const detail::QueueOf source(session, from, src_ctx, src_queue), target(session, to, dst_ctx, dst_queue);
        detail::claim(cl, from, src, "CopyBetweenContexts");
        detail::claim(cl, to, dst, "CopyBetweenContexts");
        if (from.context == to.context) {
            CheckCLError(cl.Finish(source.get()), "clFinish");
            CheckCLError(cl.EnqueueCopyBuffer(target.get(), src, dst, 0, 0, size_bytes, 0, nullptr, nullptr),
                         "clEnqueueCopyBuffer");
            session->count_data_set(size_bytes);
            return CheckCLError(cl.Finish(target.get()), "clFinish");
        }
        std::vector<unsigned char> piece(std::min(size_bytes, std::size_t(8) << 20));
        for (std::size_t at = 0; at < size_bytes; at += piece.size()) {
            const std::size_t bytes = std::min(piece.size(), size_bytes - at);
            CheckCLError(cl.EnqueueReadBuffer(source.get(), src, 1, at, bytes, piece.data(), 0, nullptr, nullptr),
                         "clEnqueueReadBuffer");
            CheckCLError(cl.EnqueueWriteBuffer(target.get(), dst, 1, at, bytes, piece.data(), 0, nullptr, nullptr),
                         "clEnqueueWriteBuffer");
            session->count_data_set(2 * bytes);
        }
    }
};

struct ExternalContextInfo {
    cl_context context = nullptr;
    cl_device_id device = nullptr;
    // Of the context; GetQueueForBuffer() gives it.
    cl_command_queue queue = nullptr;
};

// Contexts of other owners, whose buffers are then used in place.
class ExternalContextManager {
  public:
    // Opens a bridge on the context, which takes up to some seconds. It has one device, the one of this program. A queue
    // of null is a new one.
    void RegisterExternalContext(cl_context external_ctx, cl_device_id device, cl_command_queue queue = nullptr) {
        detail::not_null(external_ctx, "the context");
        detail::not_null(device, "the device");
        const auto own = detail::session();
        if (IsRegistered(external_ctx)) return;
        ExternalBufferInfo info;
        info.context = external_ctx;
        info.device = device;
        const detail::QueueOf given(own, info, external_ctx, queue);
        auto session = detail::Session::adopt(external_ctx, device, given.get());
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        detail::process().others.emplace(external_ctx, std::move(session));
    }
    // Buffers that were wrapped before may be used on.
    void UnregisterExternalContext(cl_context external_ctx) {
        std::shared_ptr<detail::Session> session;
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        const auto found = detail::process().others.find(external_ctx);
        if (found == detail::process().others.end()) return;
        session = std::move(found->second);
        detail::process().others.erase(found);
    }
    // Whether buffers of the context can be wrapped.
    bool IsRegistered(cl_context context) const {
        const std::lock_guard<std::mutex> lock(detail::process().mutex);
        const auto &session = detail::process().session;
        return (session && session->native.context == context) || detail::process().others.count(context) != 0;
    }
    ExternalContextInfo GetContextInfo(cl_context context) const {
        const auto session = detail::session_of(context);
        return {session->native.context, session->native.device, session->give_main()};
    }
    // The whole buffer, in place.
    std::unique_ptr<IMemoryBuffer> WrapExternalBuffer(cl_mem buffer) const {
        const ExternalBufferInfo info = ExternalBufferInfo::Query(buffer);
        const MemoryType type = info.IsWritable() ? MemoryType::GPU_READ_WRITE : MemoryType::GPU_READ_ONLY;
        return std::make_unique<ExternalBuffer>(info.context, nullptr, buffer, info.num_elements, type);
    }
};

} // namespace ManagerOpenCL

#endif
