// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/group.h"

#include "base/assert.h"
#include "group/internode.h"
#include "messaging/engine.h"

namespace diomp::group {
namespace {

/// `from` may have one element that stands for all.
template <typename T>
std::vector<T> choose(std::span<const T> from, const std::vector<std::uint32_t> &indices) {
    std::vector<T> chosen;
    chosen.reserve(indices.size());
    for (std::uint32_t const index : indices) {
        chosen.push_back(from[from.size() == 1 ? 0 : index]);
    }
    return chosen;
}

} // namespace

group::group(messaging::engine &engine, workspace &space, matcher &messages, const node_map &nodes,
             group_description description)
    : engine_(engine), id_(description.id), own_members_(std::move(description.members)),
      members_(own_members_.empty() ? description.shared_members
                                    : std::span<const world_rank>(own_members_)),
      self_(static_cast<int>(description.self)), endpoints_(std::move(description.endpoints)),
      layout_(make_node_layout(members_, description.self, nodes)),
      local_(engine, space, choose(members_, layout_.local_members),
             choose(std::span<const std::uint64_t>(description.offsets), layout_.local_members),
             layout_.own_local_index) {
    DIOMP_ASSERT(self_.index() < members_.size() && layout_.self() == self_.index(),
                 "the caller is a member, and the layout knows which one");
    if (layout_.num_nodes() > 1) {
        internode_ =
            std::make_unique<internode_comm>(engine, messages, description.id, layout_, local_);
    }
}

group::~group() = default;

status group::arrive_between_nodes(const sync::call_signature &call) {
    return internode_->arrive_and_wait(call);
}

status group::arrive_and_wait(const sync::call_signature &call,
                              const sync::round_payload &payload) {
    return internode_
               ? internode_->make_call([&] { return internode_->payloads().run(call, payload); })
               : local_.barrier().arrive_and_wait(call, payload);
}

const sync::round_payload &group::payload_of(std::size_t member) const {
    return internode_ ? internode_->payloads().of(member) : local_.barrier().payload_of(member);
}

void group::forget_payloads() {
    if (internode_) {
        internode_->payloads().forget();
    }
}

result<std::optional<veto>> group::agree(const sync::call_signature &call,
                                         std::optional<std::uint64_t> own_veto) {
    if (internode_) {
        return internode_->agree(call, own_veto);
    }
    DIOMP_TRY(local_.barrier().arrive_and_wait(call, {own_veto ? 1U : 0U, own_veto.value_or(0)}));
    for (std::uint32_t member = 0; member < size(); ++member) {
        const sync::round_payload &payload = local_.barrier().payload_of(member);
        if (payload[0] != 0) {
            return std::optional{veto{member, payload[1]}};
        }
    }
    return std::optional<veto>{};
}

status group::depart(const sync::call_signature &call) {
    if (subgroups_ != nullptr) {
        DIOMP_TRY(subgroups_->intra_node->depart(call));
        if (subgroups_->inter_node != nullptr) {
            DIOMP_TRY(subgroups_->inter_node->depart(call));
        }
    }
    DIOMP_TRY(arrive_and_wait(call));
    return local_.depart(call);
}

void group::wake_waiters() { engine_.wake_waiters(); }

status take_late_mismatch(group &members) {
    DIOMP_TRY(members.local_members().barrier().take_late_mismatch());
    internode_comm *const between = members.internode();
    return between != nullptr ? between->current().late_mismatch() : status{};
}

} // namespace diomp::group
