// Which bytes an object of OpenCL shows. Include hipcl/manager_opencl.hpp.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef HIPCL_MANAGER_OPENCL_BYTES_HPP
#define HIPCL_MANAGER_OPENCL_BYTES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "opencl.hpp"

namespace ManagerOpenCL {

namespace detail {

// Some bytes, under every name that another object may have for them: the object itself, the object that it is a part
// of, and the address of host memory or of shared virtual memory. Two objects show common bytes if one name fits both.
// A name too many only costs a wait.
class Bytes {
  public:
    // All that the object shows.
    static Bytes of(const OpenCL &cl, cl_mem object) {
        const auto size = queried<std::size_t>(cl.GetMemObjectInfo, object, MEM_SIZE, "clGetMemObjectInfo(CL_MEM_SIZE)");
        const auto whole = queried<cl_mem>(cl.GetMemObjectInfo, object, MEM_ASSOCIATED_MEMOBJECT,
                                           "clGetMemObjectInfo(CL_MEM_ASSOCIATED_MEMOBJECT)");
        Bytes bytes;
        bytes.ranges_.push_back({object, 0, size});
        std::uintptr_t address = 0;
        if (whole != nullptr) {
            const auto offset = queried<std::size_t>(cl.GetMemObjectInfo, object, MEM_OFFSET,
                                                     "clGetMemObjectInfo(CL_MEM_OFFSET)");
            bytes.ranges_.push_back({whole, offset, offset + size});
            // Not all drivers move a part's own address by its offset.
            address = address_of(cl, whole);
            if (address != 0) address += offset;
        }
        if (address == 0) address = address_of(cl, object);
        if (address != 0) bytes.ranges_.push_back({nullptr, address, address + size});
        return bytes;
    }
    static Bytes at(const void *pointer, std::size_t size) {
        Bytes bytes;
        const auto address = reinterpret_cast<std::uintptr_t>(pointer);
        bytes.ranges_.push_back({nullptr, address, address + size});
        return bytes;
    }

    // Further names of the same bytes.
    void add(const Bytes &others) {
        for (const Range &range : others.ranges_) {
            if (std::find(ranges_.begin(), ranges_.end(), range) == ranges_.end()) ranges_.push_back(range);
        }
    }
    bool is_empty() const noexcept { return ranges_.empty(); }
    bool meets(const Bytes &other) const noexcept {
        return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range &own) {
            return std::any_of(other.ranges_.begin(), other.ranges_.end(), [&](const Range &theirs) {
                return own.object == theirs.object && own.begin < theirs.end && theirs.begin < own.end;
            });
        });
    }
    // Whether this meets all that the other one meets: under each name.
    bool covers(const Bytes &other) const noexcept {
        return std::all_of(other.ranges_.begin(), other.ranges_.end(), [&](const Range &theirs) {
            return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range &own) {
                return own.object == theirs.object && own.begin <= theirs.begin && theirs.end <= own.end;
            });
        });
    }

  private:
    struct Range {
        // What `begin` and `end` are offsets in; null for addresses.
        cl_mem object;
        std::uintptr_t begin, end;

        bool operator==(const Range &other) const noexcept {
            return object == other.object && begin == other.begin && end == other.end;
        }
    };

    // 0 if there is none. Some drivers name a whole behind a view of shared virtual memory that they then do not know.
    static std::uintptr_t address_of(const OpenCL &cl, cl_mem object) noexcept {
        void *pointer = nullptr;
        const cl_int error = cl.GetMemObjectInfo(object, MEM_HOST_PTR, sizeof pointer, &pointer, nullptr);
        return error == CL_SUCCESS ? reinterpret_cast<std::uintptr_t>(pointer) : 0;
    }

    std::vector<Range> ranges_;
};

using BytesPtr = std::shared_ptr<const Bytes>;

} // namespace detail

} // namespace ManagerOpenCL

#endif
