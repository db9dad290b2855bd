// The buffers that kernels have as arguments. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_ARGUMENTS_HPP
#define HIPCL_MANAGER_OPENCL_ARGUMENTS_HPP

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "log.hpp"

namespace ManagerOpenCL {

namespace detail {

class Memory;

struct Argument {
    // None for an object that is no buffer of this header's.
    std::weak_ptr<Memory> memory;
    Use use;
};

// OpenCL does not tell a kernel's arguments, so that this notes those that this header has set. Guarded by `launching`
// of the order.
class Arguments {
  public:
    void set(cl_kernel kernel, cl_uint index, Argument argument) { kernels_[kernel][index] = std::move(argument); }
    // The argument is a value now.
    void clear(cl_kernel kernel, cl_uint index) noexcept {
        const auto found = kernels_.find(kernel);
        if (found != kernels_.end()) found->second.erase(index);
    }
    // Those from the index `first` on.
    std::vector<Argument> from(cl_kernel kernel, cl_uint first) const {
        std::vector<Argument> arguments;
        const auto found = kernels_.find(kernel);
        if (found == kernels_.end()) return arguments;
        const auto &set = found->second;
        for (auto entry = set.lower_bound(first); entry != set.end(); ++entry) arguments.push_back(entry->second);
        return arguments;
    }
    void forget(cl_kernel kernel) noexcept { kernels_.erase(kernel); }

  private:
    std::map<cl_kernel, std::map<cl_uint, Argument>> kernels_;
};

} // namespace detail

} // namespace ManagerOpenCL

#endif
