// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collective libraries of the vendors: NVIDIA's NCCL and AMD's RCCL, which has the same
// interface. Loaded at run time; a program starts without them.
//
// Setup for a group of endpoints (continued in vendor_group.h):
//
//  1. Each rank loads the library of its devices' vendor (load). All ranks need one with the same
//     major version; members compare version() and all fall back if they differ.
//  2. One member of the group calls make_unique_id and sends the 128 bytes to all others. It must
//     stay alive until all are connected: the members connect through the library in its process.
//  3. Every member creates a vendor_group with the id.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace diomp::device_coll::vendor {

enum class library_kind { nccl, rccl };

/// Identifies one set of communicators; used for one group, once.
struct unique_id {
    std::array<std::byte, 128> bytes{};
};

using code = int; ///< ncclResult_t
struct functions; ///< nccl.h

/// Thread-safe. One per process and kind.
class vendor_library {
public:
    /// If `path` is empty: libnccl.so.2 or librccl.so.1. OMPX_ERR_UNSUPPORTED: the library is
    /// missing, lacks a function, or is older than 2.14. It is never unloaded.
    static result<std::shared_ptr<vendor_library>> load(library_kind kind, const std::string &path);
    ~vendor_library();
    vendor_library(const vendor_library &) = delete;
    vendor_library &operator=(const vendor_library &) = delete;

    [[nodiscard]] const char *name() const; ///< "NCCL", "RCCL"
    [[nodiscard]] library_kind kind() const { return kind_; }
    [[nodiscard]] int version() const { return version_; } ///< 23203 is 2.32.3
    [[nodiscard]] std::string version_text() const;

    /// May search for network interfaces, which takes some time.
    result<unique_id> make_unique_id();

    /// For vendor_group: the functions, and the error of a failed call with the library's message.
    /// `of`: communicator whose last error is queried; may be null.
    [[nodiscard]] const functions &calls() const { return *calls_; }
    [[nodiscard]] error failed(const std::string &what, code outcome, void *of) const;
    /// Locked from the start to the end of a group of calls: the library does not allow two threads
    /// to issue calls at once for communicators on one device. The lock holder never waits for
    /// other ranks.
    [[nodiscard]] std::mutex &issuing() { return issuing_; }

private:
    vendor_library(library_kind kind, std::unique_ptr<functions> calls, int version);

    library_kind const kind_;
    std::unique_ptr<functions> const calls_;
    int const version_;
    std::mutex issuing_;
};

} // namespace diomp::device_coll::vendor
