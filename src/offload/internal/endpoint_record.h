// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The record of one device's endpoint: the host's copy, the device's, and what both share in pinned
// host memory.
#pragma once

#include "diomp/device_endpoint.h"
#include "diomp/types.h"
#include "offload/accelerators.h"
#include "offload/device_segment.h"
#include "offload/internal/peer_segments.h"
#include "offload/internal/request_rings.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::offload {

/// One thread at a time, except take_error and break_waits.
class endpoint_record {
public:
    /// Allocates the memory on the device, and stores `initial` there; the pointers are set here.
    static result<std::unique_ptr<endpoint_record>>
    create(const accelerator &on, const diomp_endpoint &initial, bool with_rings);

    [[nodiscard]] std::uint64_t device_address() const;
    [[nodiscard]] const accelerator &on() const { return on_; }

    /// What each rank had committed when its entry was last updated, [rank].
    [[nodiscard]] std::vector<std::uint64_t> &known_commits() { return known_commits_; }
    void set_common(device_segment::common_parts parts);
    void set_peer(world_rank rank, const diomp_peer &to);
    [[nodiscard]] const diomp_endpoint &values() const { return values_; }
    /// Null: the device makes no requests.
    [[nodiscard]] request_rings *rings() { return rings_.get(); }
    /// Whether the next regions may make requests.
    void allow_requests(bool allowed);
    /// No region runs on the device: empties rings in which a thread has given up a request, and
    /// removes groups from the device's table.
    status reset(std::span<const ompx_group_t> freed);
    /// Copies what has been set to the device; blocks until it is there.
    status flush();

    /// The first error that the device has stored since the last call.
    std::optional<diomp_device_error> take_error();
    /// Ends the waits of the device's threads.
    void break_waits(int status);

private:
    struct shared_part; ///< in pinned host memory

    endpoint_record(const accelerator &on, const diomp_endpoint &initial);
    [[nodiscard]] shared_part &shared() const;
    [[nodiscard]] std::byte *peers_on_device() const;
    status forget_groups(std::span<const ompx_group_t> freed);

    const accelerator &on_;
    diomp_endpoint values_;
    std::vector<diomp_peer> peers_; ///< [rank]
    std::vector<std::uint64_t> known_commits_;
    bool is_changed_ = true;
    std::unique_ptr<device::memory> memory_; ///< the record, the peers, the rings, the groups
    device::pinned_memory pinned_;
    std::unique_ptr<device::queue> queue_;
    std::unique_ptr<request_rings> rings_;
};

/// What a device with the own segment can reach of another one, of which these extents are mapped:
/// the part from its front and the part from its end without holes. `segment_bytes` and
/// `mapped_end`, see device_segment::mapped(), are the other segment's.
diomp_peer describe_peer(const peer_segments::view &mapped, std::uint64_t segment_bytes,
                         std::uint64_t mapped_end, device_segment::mapped_part own);

} // namespace diomp::offload
