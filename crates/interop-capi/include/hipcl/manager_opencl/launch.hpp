// Launches behind the commands on their buffers. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_LAUNCH_HPP
#define HIPCL_MANAGER_OPENCL_LAUNCH_HPP

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"

namespace ManagerOpenCL {

namespace detail {

// Gives the argument's bytes to OpenCL, and says what a kernel does with them.
inline void take(Order &order, Argument &argument) {
    const char *const operation = "ExecuteKernel";
    if (const auto memory = argument.memory.lock()) {
        memory->take_for(operation);
        argument.use = memory->kernel_use();
    } else {
        for (const auto &other : order.registry.meeting(*argument.use.bytes)) other->take_for(operation);
    }
}

inline Argument argument_of(Order &order, cl_mem object) {
    not_null(object, "a buffer of the launch");
    Argument argument;
    if (const auto memory = order.registry.memory_of(object)) {
        argument = {memory, memory->kernel_use()};
    } else {
        const auto flags = queried<cl_mem_flags>(order.cl->GetMemObjectInfo, object, MEM_FLAGS,
                                                 "clGetMemObjectInfo(CL_MEM_FLAGS)");
        argument.use = {std::make_shared<const Bytes>(Bytes::of(*order.cl, object)), (flags & CL_MEM_READ_ONLY) == 0};
    }
    return argument;
}

// A launch with the buffers that are passed here, which are the first arguments, and those that were set before.
inline EventPtr launched(const std::shared_ptr<Session> &session, cl_command_queue queue, cl_kernel kernel,
                         const std::vector<cl_mem> &buffers, const std::array<std::size_t, 3> &global,
                         const std::array<std::size_t, 3> &local) {
    not_null(kernel, "the kernel");
    cl_uint dimensions = 3;
    while (dimensions > 1 && global[dimensions - 1] <= 1) dimensions--;
    if (global[0] == 0) throw std::invalid_argument("the launch has 0 work-items");
    const std::size_t *const groups = local[0] == 0 ? nullptr : local.data();

    Order &order = *session->order;
    std::vector<cl_mem> objects;
    std::vector<Argument> arguments;
    // Nothing is known of the commands on an object that is no buffer of this header's.
    Theirs theirs = Theirs::ON_FOREIGN_QUEUES;
    for (const cl_mem buffer : buffers) {
        arguments.push_back(argument_of(order, buffer));
        take(order, arguments.back());
        const auto memory = arguments.back().memory.lock();
        if (!memory) theirs = Theirs::ON_GIVEN_QUEUES;
        objects.push_back(memory ? memory->object() : buffer);
    }
    const auto first = static_cast<cl_uint>(buffers.size());
    for (Argument &argument : order.arguments_from(kernel, first)) {
        take(order, argument);
        arguments.push_back(std::move(argument));
    }
    std::vector<Use> uses;
    for (const Argument &argument : arguments) uses.push_back(argument.use);

    const std::lock_guard<std::mutex> lock(order.launching);
    for (cl_uint i = 0; i < first; i++) {
        CheckCLError(session->cl.SetKernelArg(kernel, i, sizeof(cl_mem), &objects[i]),
                     "clSetKernelArg(" + std::to_string(i) + ")");
        order.arguments.set(kernel, i, std::move(arguments[i]));
    }
    const auto enqueue = [&](cl_uint count, const cl_event *waits, cl_event *made) {
        return session->cl.EnqueueNDRangeKernel(queue, kernel, dimensions, nullptr, global.data(), groups, count, waits,
                                                made);
    };
    return order.enqueue("clEnqueueNDRangeKernel", queue, uses, theirs, enqueue);
}

} // namespace detail

} // namespace ManagerOpenCL

#endif
