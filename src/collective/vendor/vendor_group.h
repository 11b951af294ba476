// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of a group of endpoints (devices of ranks) by the vendor's library.
//
// Each member process has one vendor_group with all its endpoints in the group; each endpoint has a
// communicator and a stream of its own. Nothing is asked of the library before the first call,
// which connects all members: it is complete only when all have made it, whatever it does.
//
// Who uses it sees to this, since no single process can:
//
//  - No two endpoints of the group are the same device, in whatever process (properties::uuid, and
//    the node): the libraries refuse that or hang.
//  - Calls of one group: the same ones in the same order on all members, alike in all but their
//    buffers. One at a time in each process, which makes it for all its endpoints at once.
//  - Calls of different groups that share a device: in one order on all members of both, or not at
//    the same time. An operation occupies its device while it waits for its peers, and the driver
//    may hold others back until it is over; two members that start two operations in different
//    orders may then wait for each other for ever. NVIDIA asks for one order everywhere, or for
//    calls that do not overlap. Within this process `start` passes them on one after the other
//    (vendor_library::issuing); it does not choose the order. Groups' threads for _nb calls do not
//    keep one by themselves.
//  - What other work wrote into the buffers is complete: the streams wait for nothing but
//    themselves. The buffers are memory of the endpoint's device.
//
// Copies of the stream pool are not involved, and a fence does not wait for collectives: whether
// they end is up to other ranks, which may be waiting for what the fence completes.
//
// Communicators do not block, so no call here waits for other ranks, and an abort is possible at
// any time. Reductions are combined in the library's order, not in that of the ranks; all members
// get the same bits from one call, but another library, size or machine may give others.
#pragma once

#include "base/function_ref.h"
#include "collective/request.h"
#include "collective/vendor/vendor_library.h"
#include "device/device.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::collective::vendor {

/// One of the caller's endpoints in the group.
struct endpoint {
    device::backend *backend = nullptr; ///< of the library's vendor; outlives the group
    device::device_id device;
    int index = -1; ///< in the group
};

/// One thread at a time, any.
class vendor_group {
public:
    struct options {
        std::shared_ptr<vendor_library> library;
        unique_id id;              ///< the group's own, the same on all members
        int num_endpoints = 0;     ///< of the whole group
        std::vector<endpoint> own; ///< at least one
    };

    /// Local. Opens the memory of own devices to each other, because within a process the library
    /// may read buffers where they are. OMPX_ERR_ARG: endpoints that make no sense.
    static result<std::unique_ptr<vendor_group>> create(options chosen);
    /// Aborts a call that is under way. If there is none the other members should end their groups
    /// too: the library may wait for those on the same node.
    ~vendor_group();
    vendor_group(const vendor_group &) = delete;
    vendor_group &operator=(const vendor_group &) = delete;

    /// Starts a call for all own endpoints, `own` in the order of options::own, with addresses on
    /// their devices; the buffers in `asked` do not count. The lists are not needed afterwards, the
    /// memory is until the end. Errors about
    /// arguments (OMPX_ERR_ARG, OMPX_ERR_RANK; OMPX_ERR_UNSUPPORTED: not can_do) leave all as it
    /// was. OMPX_ERR_STATE: a call is under way, or the group has failed before. All other errors
    /// end the group as abort does.
    status start(const request &asked, std::span<const endpoint_buffers> own);

    /// Whether the call is complete on all own endpoints (not: elsewhere), or there is none. Does
    /// not block; nothing goes on without it being asked. An error is about the call, the
    /// communicators are aborted then, and the buffers have any contents.
    result<bool> test();

    /// Waits until `is_over` has said true, which it does once; gives up with an error, such as a
    /// timeout. conduit::engine's wait is one.
    using wait_function = function_ref<status(function_ref<bool()> is_over)>;
    /// start, and test until it is complete. If `wait` gives up the group is aborted.
    status run(const request &asked, std::span<const endpoint_buffers> own, wait_function wait);

    /// Gives up: ends what is under way on own devices, frees the communicators, and lets every
    /// later call fail with `reason`. Other members notice by an error or not at all.
    void abort(const std::string &reason);

    [[nodiscard]] bool usable() const { return !broken_.has_value(); }
    /// For messages: what the call under way waits for.
    [[nodiscard]] std::string describe() const;

private:
    struct lane;
    /// Of the call: connecting: communicators are being made. launching: the library has it and has
    /// not put all on the streams. running: the streams have it.
    enum class phase { idle, connecting, launching, running };

    explicit vendor_group(options chosen);

    status prepare(const request &asked, std::span<const endpoint_buffers> own);
    status connect();
    status launch();
    status issue();
    result<bool> advance();
    result<bool> all_ready();
    result<bool> all_idle();
    void release(bool aborting);

    options const chosen_;
    std::vector<lane> lanes_; ///< as options::own
    phase phase_ = phase::idle;
    bool connected_ = false;
    sync::operation current_ = sync::operation::none;
    std::optional<std::string> broken_; ///< why
};

} // namespace diomp::collective::vendor
