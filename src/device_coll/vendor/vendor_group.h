// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of a group of endpoints (devices of ranks) by the vendor's library.
//
// Each member process has one vendor_group with all its endpoints in the group; each endpoint has a
// communicator and a stream of its own. The library is not used before the first call, which
// connects all members; that call completes only when all members have made it, whatever it does.
//
// Requirements that the user must meet, since no single process can check them:
//
//  - No two endpoints of the group are on one device, in any process (properties::uuid, and the
//    node): the libraries refuse that or hang.
//  - All members make the same calls of one group in the same order, equal except for the buffers.
//    A process makes one call at a time, for all its endpoints at once.
//  - Calls of different groups that share a device: in one order on all members of both, or not at
//    the same time. An operation occupies its device while it waits for its peers, and the driver
//    may delay others until it ends; two members that start two operations in different orders may
//    then deadlock. NVIDIA requires one order everywhere, or calls that do not overlap. Within this
//    process `start` issues them one after the other (vendor_library::issuing); it does not choose
//    the order. The groups' threads for _nb calls do not establish an order by themselves.
//  - Earlier writes to the buffers are complete: the streams do not wait for other work. The
//    buffers are memory of the endpoint's device.
//
// The stream pool is not involved, and a fence does not wait for these collectives: their
// completion depends on other ranks, which may wait for the operations that the fence completes.
//
// Communicators are nonblocking, so no call here waits for other ranks, and an abort is possible at
// any time. Reductions use the library's order, not rank order; all members get the same bits from
// one call, but another library, size or machine may give others.
#pragma once

#include "base/function_ref.h"
#include "coll/request.h"
#include "device/device.h"
#include "device_coll/vendor/vendor_library.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::device_coll::vendor {

/// One of the caller's endpoints in the group.
struct endpoint {
    device::backend *backend = nullptr; ///< of the library's vendor; must outlive the group
    device::device_id device;
    int index = -1; ///< number in the group
};

/// Used by one thread at a time, but not always the same one.
class vendor_group {
public:
    struct options {
        std::shared_ptr<vendor_library> library;
        unique_id id;              ///< of this group, equal on all members
        int num_endpoints = 0;     ///< of the whole group
        std::vector<endpoint> own; ///< at least one
    };

    /// Local operation. Enables peer access between the own devices, because within a process the
    /// library may access buffers directly. OMPX_ERR_ARG: invalid endpoints.
    static result<std::unique_ptr<vendor_group>> create(options chosen);
    /// Aborts a running call. If none is running, the other members should destroy their groups
    /// too: the library may wait for those on the same node.
    ~vendor_group();
    vendor_group(const vendor_group &) = delete;
    vendor_group &operator=(const vendor_group &) = delete;

    /// Starts a call for all own endpoints, `own` in the order of options::own, with addresses on
    /// their devices; the buffers in `args` are ignored. The lists may be freed on return, the
    /// buffers must stay until completion. Invalid arguments (OMPX_ERR_ARG, OMPX_ERR_RANK;
    /// OMPX_ERR_UNSUPPORTED: not supports) change nothing. OMPX_ERR_STATE: a call is running, or
    /// the group has failed before. All other errors end the group as abort does.
    status start(const coll::request &args, std::span<const coll::endpoint_buffers> own);

    /// Whether the call is complete on all own endpoints (not on other ranks), or none is running.
    /// Does not block; the call progresses only in test. After an error the call has failed, the
    /// communicators are aborted, and the contents of the buffers are undefined.
    result<bool> test();

    /// Blocks until `is_over` has returned true, which it does once, or until an error such as a
    /// timeout. conduit::engine::wait is such a function.
    using wait_function = function_ref<status(function_ref<bool()> is_over)>;
    /// Runs start, then test until the call is complete. If `wait` fails the group is aborted.
    status run(const coll::request &args, std::span<const coll::endpoint_buffers> own,
               wait_function wait);

    /// Ends the running call on the own devices, frees the communicators, and makes every later
    /// call fail with `reason`. Other members notice by an error or not at all.
    void abort(const std::string &reason);

    [[nodiscard]] bool usable() const { return !broken_.has_value(); }
    /// Text for messages: the running call and its phase.
    [[nodiscard]] std::string describe() const;

private:
    struct endpoint_state;
    /// Phases of a call. connecting: communicators are being created. launching: the library has
    /// the call but has not enqueued all of it. running: the streams have it.
    enum class phase { idle, connecting, launching, running };

    explicit vendor_group(options chosen);

    status prepare(const coll::request &args, std::span<const coll::endpoint_buffers> own);
    status connect();
    status launch();
    status issue();
    result<bool> advance();
    result<bool> all_ready();
    result<bool> all_idle();
    void release(bool aborting);

    options const chosen_;
    std::vector<endpoint_state> endpoint_states_; ///< in the order of options::own
    phase phase_ = phase::idle;
    bool connected_ = false;
    sync::operation current_ = sync::operation::none;
    std::optional<std::string> broken_; ///< reason of the abort
};

} // namespace diomp::device_coll::vendor
