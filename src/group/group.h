// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups: ordered sets of ranks that meet and make collective calls together.
//
// Glossary: member: a rank of the group, numbered by its group rank. endpoints: devices of members,
// if the program has made the group of those; they have numbers of their own (endpoints.h). here:
// the members on the caller's node (local_group). bridge: what joins them with the other nodes, if
// there are any. handle: what the program holds, an index with a generation, never an address.
#pragma once

#include "group/bridge.h"
#include "group/call_queue.h"
#include "group/endpoints.h"
#include "group/local_group.h"
#include "memory/segment.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace diomp::group {

class segment_workspace final : public workspace {
public:
    explicit segment_workspace(memory::segment &own) : own_(own) {}
    using workspace::allocate;
    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t spare) override {
        return own_.allocate_internal(nbytes, spare);
    }
    void release(std::uint64_t slot_offset) override { own_.release_internal(slot_offset); }
    [[nodiscard]] bool holds(std::span<const std::byte> range) const override {
        auto const offset = static_cast<std::size_t>(range.data() - own_.base());
        return offset < own_.size_bytes() && range.size() <= own_.size_bytes() - offset;
    }

private:
    memory::segment &own_;
};

struct group_parts {
    std::vector<world_rank> members;    ///< [group rank]
    std::vector<std::uint64_t> offsets; ///< of the members' blocks, [group rank]
    std::size_t self = 0;               ///< the caller's place
    std::uint64_t id = 0;               ///< the same on all members, and no other group's
    endpoint_list endpoints;            ///< empty: a group of ranks
};

class group;

/// Groups that a group of endpoints over several nodes is made of, for calls that do one thing on a
/// node and another between nodes.
struct node_parts {
    std::unique_ptr<group> inside;  ///< the endpoints on the caller's node, in their order
    std::unique_ptr<group> between; ///< each node's first endpoint; null: it is not the caller's
    bool are_tried = false;         ///< for whoever uses them
};

/// Any thread may ask for members; who makes a call holds the turn.
class group {
public:
    group(conduit::engine &engine, workspace &space, mailbox &letters, const node_map &nodes,
          group_parts parts);
    group(const group &) = delete;
    group &operator=(const group &) = delete;

    [[nodiscard]] std::size_t size() const { return members_.size(); }
    [[nodiscard]] group_rank self() const { return self_; }
    [[nodiscard]] std::span<const world_rank> members() const { return members_; }
    [[nodiscard]] const endpoint_list &endpoints() const { return endpoints_; }
    /// Endpoints, or members of a group of ranks: what the program counts.
    [[nodiscard]] std::size_t count() const {
        return endpoints_.empty() ? size() : endpoints_.size();
    }
    /// The caller's endpoints; of a group of ranks the caller counts as one.
    [[nodiscard]] std::size_t num_own() const {
        return endpoints_.empty() ? 1 : endpoints_.of(self_.index()).size();
    }
    /// Number in the group of the caller's number `place`.
    [[nodiscard]] std::size_t own(std::size_t place) const {
        return endpoints_.empty() ? self_.index() : endpoints_.of(self_.index())[place];
    }
    [[nodiscard]] call_queue &calls() { return calls_; }
    [[nodiscard]] call_queue::turn enter() { return calls_.enter(); }
    [[nodiscard]] conduit::engine &engine() { return engine_; }

    /// The caller's node.
    [[nodiscard]] local_group &here() { return here_; }
    [[nodiscard]] bool spans_nodes() const { return across_ != nullptr; }
    /// To the others; nullptr if there are none.
    [[nodiscard]] bridge *across() { return across_.get(); }

    /// Blocks until every member has made the call. OMPX_ERR_MISMATCH on all if they made different
    /// ones; they meet again next time as if nothing had happened.
    status meet(const sync::call_signature &call) {
        return across_ ? across_->meet(call) : here_.meet(call);
    }
    /// The same, and afterwards everybody knows everybody's payload. Between nodes it costs a table
    /// of all payloads in every member: for making groups, not for data.
    status meet(const sync::call_signature &call, const sync::meeting_payload &payload) {
        return across_ ? across_->meet(call, payload) : here_.meet(call, payload);
    }
    [[nodiscard]] const sync::meeting_payload &payload_of(std::size_t member) const {
        return across_ ? across_->payload_of(member) : here_.payload_of(member);
    }
    /// A meeting in which members may object. Everybody learns of the lowest one that does.
    result<std::optional<objection>> agree(const sync::call_signature &call,
                                           std::optional<std::uint64_t> own_objection);

    /// Null: nobody has made them (group_registry::divide). With the turn.
    [[nodiscard]] node_parts *parts() { return parts_.get(); }
    void keep(node_parts parts) { parts_ = std::make_unique<node_parts>(std::move(parts)); }

    /// Last call on the group: waits until nobody touches this member's block any more. On error
    /// the block must stay.
    status depart(const sync::call_signature &call);

private:
    conduit::engine &engine_;
    std::vector<world_rank> members_;
    group_rank self_;
    endpoint_list endpoints_;
    node_layout layout_;
    local_group here_;
    std::unique_ptr<bridge> across_;
    std::unique_ptr<node_parts> parts_;
    call_queue calls_; ///< last, so that its thread ends first
};

} // namespace diomp::group
