// ManagerOpenCL on hipcl, for C++17: the classes of that library on memory that HIP and rocBLAS use as well.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A program that was written for ManagerOpenCL includes this header in place of the old ones. Names and signatures are
// the old ones. New are:
//
//   GetSharedBuffer()  of every buffer: its hipcl::Buffer, for cgemm, inverses, accesses and descriptors
//   GetBridge()        of the engine: the hipcl::Bridge, for streams, BLAS handles and the copy counters
//
// Errors are exceptions that name the cause and the remedy: OpenCLError for what OpenCL refuses, hipcl::Error for what
// hipcl refuses, std::invalid_argument for arguments that no call can use. Nothing is printed unless the function's
// name begins with Print, and nothing is replaced by something slower: what is not possible is an error.
//
// Who uses the memory. A buffer is OpenCL's from its first use until GetSharedBuffer(), which waits for all queues that
// this header knows: those of the pool, and those that buffers and ExternalQueueWrapper were created with. From then on
// it is hipcl's, until the next call on the buffer (GetCLMem(), SetAsKernelArg(), Write(), ExecuteKernel() with it),
// which waits for HIP. So call one of these again before you enqueue OpenCL commands of your own. Another buffer over
// the same bytes counts as the buffer.
//
// What is ordered. Transfers and launches of this header run in the order of the calls, whatever their queues, if they
// use common bytes: of one buffer, of a part and its whole, of two objects over one address. Transfers, launches and
// hand-offs to HIP also run after what the program itself has enqueued on queues of its own that this header knows.
// After what it has enqueued on queues of the pool run transfers, hand-offs, and launches on a cl_mem that was wrapped
// later or is not wrapped.
//
// What is not ordered. Other launches do not run after the program's own commands on queues of the pool, or all
// launches would run one by one: finish that queue, or launch there yourself. The program's own commands do not run
// after commands of this header: wait for their event, or pass it to ExternalQueueWrapper::WaitForEvent(). Nothing is
// known of other queues, of arguments that the program sets by clSetKernelArg(), and of one memory in two contexts.
//
// Threads. Different buffers may be used on different threads, and the engine, the pool and the caches on all of them.
// A buffer is used on one thread at a time, as before; so are two buffers over common bytes. Each thread gets kernel
// objects of its own from the caches, because arguments belong to the object.
//
// Call Cleanup() before main() returns. Objects that are still alive then keep what they need.
#ifndef HIPCL_MANAGER_OPENCL_HPP
#define HIPCL_MANAGER_OPENCL_HPP

#include "manager_opencl/opencl.hpp"
#include "manager_opencl/order.hpp"
#include "manager_opencl/session.hpp"
#include "manager_opencl/memory.hpp"
#include "manager_opencl/launch.hpp"
#include "manager_opencl/device.hpp"
#include "manager_opencl/external_info.hpp"
#include "manager_opencl/buffers.hpp"
#include "manager_opencl/gpu_memory_buffer.hpp"
#include "manager_opencl/factory.hpp"
#include "manager_opencl/programs.hpp"
#include "manager_opencl/engine.hpp"
#include "manager_opencl/external.hpp"

#endif
