// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPCCL: collective operations on groups. On one node the members load and store each other's
// slots.
//
// Terms. stage buffer: see group/internal/local_group.h. chunk: the part of a call that goes
// through the stage buffers in one round. partition: the part of a chunk that one member reduces
// for all. zero-copy: the buffers lie in the arena, so that members read them directly. The choice
// of algorithms: select.h.
//
// Guarantees: a reduction combines the operands in rank order, each element once or in the same way
// on every member, so all members get bitwise equal results. If members make different calls, the
// call fails with OMPX_ERR_MISMATCH before any buffer is written: on all members, except that in a
// rooted call of up to 256 bytes only members that wait for the differing one notice
// (check_all_members: all members). The group stays usable after an error.
#pragma once

#include "coll/internal/operators.h"
#include "coll/request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::group {
class group;
struct veto;
} // namespace diomp::group

namespace diomp::coll {

/// Bytes that a call reads and writes at one member, from the start of each buffer.
struct buffer_use {
    std::size_t src_bytes = 0; ///< 0: not read
    std::size_t dst_bytes = 0; ///< 0: not used
    bool reads_dst = false;    ///< or leaves parts of it unchanged
};
buffer_use use_of(const request &args, const endpoint_buffers &buffers, std::size_t num_members,
                  std::size_t member);

class algorithm_source;
struct network_costs;

/// How a sliced allreduce combines slices over the nodes (slice_exchange.h).
struct slicing {
    bool is_direct = false;       ///< else in rounds
    std::size_t num_halvings = 0; ///< the first rounds, which halve; the others double
    bool has_lag = false;         ///< an exchange ends while the next chunk is reduced

    bool operator==(const slicing &) const = default;
};
/// Limits of the choice of allreduce_choice.h; equal on all members.
struct slicing_options {
    /// Nodes with fewer members do not split small operands: their leaders are not the bottleneck.
    std::size_t min_members = 5;
    /// All calls that can be sliced are, whatever the model says.
    bool always = false;
    /// For tests: like `always`, in this way or with as many halvings as there are rounds, and with
    /// chunks of max_chunk_bytes.
    std::optional<slicing> forced;
    std::size_t max_chunk_bytes = SIZE_MAX;

    bool operator==(const slicing_options &) const = default;
};

struct options {
    const network_costs *costs = nullptr; ///< if not the usual ones; equal on all members
    std::uintptr_t arena_base = 0; ///< arena: equal addresses are the same memory in all ranks
    std::size_t arena_span = 0;
    [[nodiscard]] bool in_arena(const void *buffer) const {
        return reinterpret_cast<std::uintptr_t>(buffer) - arena_base < arena_span;
    }
    std::size_t stream_threshold_bytes = 0;
    /// From this size on, the members share the work of a bcast between buffers in the arena: each
    /// member writes a partition of all other buffers. Smaller blocks stay in the readers' caches.
    /// The largest value among the members is used.
    std::size_t shared_bcast_min_bytes = SIZE_MAX;
    bool oversubscribed = false;             ///< more ranks than cores: few, large steps
    std::size_t stage_buffer_half_bytes = 0; ///< of each buffer half once stage buffers have grown
    /// Every member waits for all members in every call, so that all detect a mismatch.
    bool check_all_members = false;
    slicing_options slicing; ///< of allreduces over nodes
    /// Chooses algorithms; null: the built-in rules do. Must outlive the collectives.
    const algorithm_source *source = nullptr;
};

/// Thread-safe. One per runtime; owns the user-defined operators.
class collectives {
public:
    explicit collectives(const options &chosen);

    /// Runs a call on a group of ranks. Blocks until the caller's part is done and its buffers may
    /// be reused.
    status run(group::group &members, const request &args);
    /// Starts a call and returns at once; it runs in order on the group's thread. Invalid arguments
    /// are reported here, all other errors by the event.
    result<ompx_event *> start(group::group &members, const request &args);

    /// Runs or starts a call for all of the caller's endpoints in the group, in group order; the
    /// buffers in `args` are ignored. All memory must be loadable in this process.
    status run(group::group &members, const request &args, std::span<const endpoint_buffers> own);
    result<ompx_event *> start(group::group &members, const request &args,
                               std::vector<endpoint_buffers> own);
    /// Checks the arguments as `run` does; for callers that pass the call to other libraries.
    /// `own` begins with the caller's endpoint number `first`.
    status check(const group::group &members, const request &args,
                 std::span<const endpoint_buffers> own, std::size_t first = 0) const;

    [[nodiscard]] user_operators &operators() { return operators_; }

    /// Runs a call of the runtime among the ranks of any group; each rank takes part once, also in
    /// a group of endpoints. Not for operations with block lists. The caller holds the call lock.
    status run_among_ranks(group::group &members, const request &args);
    /// Barrier with the signature of `args`: OMPX_ERR_MISMATCH on all members if they differ. For
    /// calls that another library makes. The caller holds the call lock.
    static status compare(group::group &members, const request &args);
    /// Barrier with the signature of `args` in which members may veto. Returns the veto of the
    /// lowest member on all members. The caller holds the call lock.
    static result<std::optional<group::veto>> agree(group::group &members, const request &args,
                                                    std::optional<std::uint64_t> own_veto);
    /// Barrier with payload where all members are on one node. Afterwards `members.local_members()`
    /// has the payloads of all and, up to stage_memory::small_bytes, their `staged` data. The
    /// caller holds the call lock.
    static status arrive_and_wait(group::group &members, const request &args,
                                  const sync::round_payload &payload,
                                  std::span<const std::byte> staged = {});
    /// `run` for a caller that holds the call lock. `is_checked`: `check` has succeeded.
    status run_locked(group::group &members, const request &args,
                      std::span<const endpoint_buffers> own, bool is_checked = false);

private:
    status run_common_case(group::group &members, const request &args);
    result<reducer> resolve(const request &args) const;

    options options_;
    user_operators operators_;
};

} // namespace diomp::coll
