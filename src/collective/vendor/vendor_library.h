// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collective libraries of the vendors: NVIDIA's NCCL and AMD's RCCL, which has the same
// interface. Loaded at run time; a program starts without them.
//
// How a group of endpoints comes to use one (vendor_group.h is the other half):
//
//  1. Each rank loads the library of its devices' vendor (load). All must have one, and the same
//     major version; members compare version() and fall back together if they differ.
//  2. One member of the group calls make_unique_id and hands the 128 bytes to all others by
//     whatever way there is. It must stay alive until all are connected: the library in its process
//     is where they meet.
//  3. Every member makes a vendor_group of it.
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace diomp::collective::vendor {

enum class library_kind { nccl, rccl };

/// What the members of one set of communicators have in common; for one group, once.
struct unique_id {
    std::array<std::byte, 128> bytes{};
};

using code = int; ///< ncclResult_t
struct functions; ///< nccl.h

/// Any thread. One per process and kind.
class vendor_library {
public:
    /// `path` empty: libnccl.so.2 or librccl.so.1. OMPX_ERR_UNSUPPORTED: it is not there, lacks a
    /// function, or is older than 2.14. It stays in the process.
    static result<std::shared_ptr<vendor_library>> load(library_kind kind, const std::string &path);
    ~vendor_library();
    vendor_library(const vendor_library &) = delete;
    vendor_library &operator=(const vendor_library &) = delete;

    [[nodiscard]] const char *name() const; ///< "NCCL", "RCCL"
    [[nodiscard]] library_kind kind() const { return kind_; }
    [[nodiscard]] int version() const { return version_; } ///< 23203 is 2.32.3
    [[nodiscard]] std::string version_text() const;

    /// May look for network interfaces, which takes its time.
    result<unique_id> make_unique_id();

    /// For vendor_group: the functions, and the error about one that has failed, with the library's
    /// words. `of` (a communicator, may be null) is whose last error is asked for.
    [[nodiscard]] const functions &calls() const { return *calls_; }
    [[nodiscard]] error failed(const std::string &what, code outcome, void *of) const;
    /// Held from the start to the end of a group of calls: the library does not allow two threads
    /// to issue calls at a time for communicators on one device. Nothing under it waits for others.
    [[nodiscard]] std::mutex &issuing() { return issuing_; }

private:
    vendor_library(library_kind kind, std::unique_ptr<functions> calls, int version);

    library_kind const kind_;
    std::unique_ptr<functions> const calls_;
    int const version_;
    std::mutex issuing_;
};

} // namespace diomp::collective::vendor
