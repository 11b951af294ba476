// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/group.h"

namespace diomp::group {
namespace {

template <typename T>
std::vector<T> choose(const std::vector<T> &from, const std::vector<std::uint32_t> &indices) {
    std::vector<T> chosen;
    chosen.reserve(indices.size());
    for (std::uint32_t const index : indices) {
        chosen.push_back(from[index]);
    }
    return chosen;
}

} // namespace

group::group(conduit::engine &engine, workspace &space, mailbox &letters, const node_map &nodes,
             group_parts parts)
    : engine_(engine), members_(std::move(parts.members)), self_(static_cast<int>(parts.self)),
      endpoints_(std::move(parts.endpoints)), layout_(lay_out(members_, parts.self, nodes)),
      here_(engine, space, choose(members_, layout_.here), choose(parts.offsets, layout_.here),
            layout_.own_place) {
    if (layout_.num_nodes() > 1) {
        across_ = std::make_unique<bridge>(engine, letters, parts.id, members_, layout_, here_,
                                           parts.self);
    }
}

result<std::optional<objection>> group::agree(const sync::call_signature &call,
                                              std::optional<std::uint64_t> own_objection) {
    if (across_) {
        return across_->agree(call, own_objection);
    }
    DIOMP_TRY(here_.meet(call, {own_objection ? 1U : 0U, own_objection.value_or(0)}));
    for (std::uint32_t member = 0; member < size(); ++member) {
        const sync::meeting_payload &told = here_.payload_of(member);
        if (told[0] != 0) {
            return std::optional{objection{member, told[1]}};
        }
    }
    return std::optional<objection>{};
}

status group::depart(const sync::call_signature &call) {
    if (parts_ != nullptr) {
        DIOMP_TRY(parts_->inside->depart(call));
        if (parts_->between != nullptr) {
            DIOMP_TRY(parts_->between->depart(call));
        }
    }
    DIOMP_TRY(meet(call));
    return here_.depart(call);
}

} // namespace diomp::group
