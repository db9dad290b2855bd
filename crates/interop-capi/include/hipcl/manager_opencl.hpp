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
// hipcl refuses, std::invalid_argument for arguments that no call can use. Nothing is printed unless the function's name
// begins with Print, and nothing is replaced by something slower: what is not possible is an error.
//
// Who uses the memory. A buffer is OpenCL's from its first use until GetSharedBuffer(), which waits for all queues that
// this header knows: those of the pool, and those that buffers and ExternalQueueWrapper were created with. From then on
// it is hipcl's, until the next call on the buffer (GetCLMem(), SetAsKernelArg(), Write(), ExecuteKernel() with it),
// which waits for HIP. So call one of these again before you enqueue OpenCL commands of your own. Transfers and launches
// of this header run in the order of the calls, whatever their queues. A transfer also runs after the commands that the
// program itself has enqueued on queues of the pool.
//
// What is not ordered. Wrap memory once: two buffers over the same bytes (memory that is wrapped twice, a part beside its
// whole) do not know of each other's commands. A launch does not run after commands that the program itself has enqueued
// on other queues. Finish the first queue in both cases.
//
// Threads. Different buffers may be used on different threads, and the engine, the pool and the caches on all of them. A
// buffer is used on one thread at a time, as before.
//
// Call Cleanup() before main() returns. Objects that are still alive then keep what they need.
#ifndef HIPCL_MANAGER_OPENCL_HPP
#define HIPCL_MANAGER_OPENCL_HPP

#include "manager_opencl/opencl.hpp"
#include "manager_opencl/session.hpp"
#include "manager_opencl/memory.hpp"
#include "manager_opencl/device.hpp"
#include "manager_opencl/buffers.hpp"
#include "manager_opencl/programs.hpp"
#include "manager_opencl/engine.hpp"
#include "manager_opencl/external.hpp"

#endif
