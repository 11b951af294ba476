// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "directive.h"

#include <array>

namespace diomp::pragma {
namespace {

// name, call, on_target, has_operator, has_src, has_root, size, lists
constexpr std::array kinds = {
    directive_kind{"device_bcast", "ompx_target_bcast", true, false, false, true, block::dst},
    directive_kind{"device_reduce", "ompx_target_reduce", true, true, false, true, block::dst},
    directive_kind{"device_allreduce", "ompx_target_allreduce", true, true, false, false,
                   block::dst},
    directive_kind{"device_scan", "ompx_target_scan", true, true, false, false, block::dst},
    directive_kind{"device_exscan", "ompx_target_exscan", true, true, false, false, block::dst},
    directive_kind{"device_gather", "ompx_target_gather", true, false, true, true, block::src},
    directive_kind{"device_allgather", "ompx_target_allgather", true, false, true, false,
                   block::src},
    directive_kind{"device_scatter", "ompx_target_scatter", true, false, true, true, block::dst},
    directive_kind{"device_alltoall", "ompx_target_alltoall", true, false, true, false,
                   block::per_member_of_src},
    directive_kind{"device_reduce_scatter", "ompx_target_reduce_scatter", true, true, true, false,
                   block::dst},
    directive_kind{"device_gatherv", "ompx_target_gatherv", true, false, true, true, block::dst,
                   blocks_of::dst},
    directive_kind{"device_allgatherv", "ompx_target_allgatherv", true, false, true, false,
                   block::dst, blocks_of::dst},
    directive_kind{"device_scatterv", "ompx_target_scatterv", true, false, true, true, block::src,
                   blocks_of::src},
    directive_kind{"device_alltoallv", "ompx_target_alltoallv", true, false, true, false,
                   block::dst, blocks_of::both},
    directive_kind{"barrier", "ompx_barrier_group", false, false, false, false, block::dst},
    directive_kind{"fence", "ompx_fence_group", false, false, false, false, block::dst},
};

// As in the runtime's collectives: integers support every operator.
constexpr std::array operators = {
    operator_kind{"+", "OMPX_SUM", false, true, true},
    operator_kind{"*", "OMPX_PROD", false, true, true},
    operator_kind{"min", "OMPX_MIN", true, true, false},
    operator_kind{"max", "OMPX_MAX", true, true, false},
    operator_kind{"&", "OMPX_BAND", true, false, false},
    operator_kind{"|", "OMPX_BOR", true, false, false},
    operator_kind{"^", "OMPX_BXOR", true, false, false},
    operator_kind{"&&", "OMPX_LAND", true, true, false},
    operator_kind{"||", "OMPX_LOR", true, true, false},
    operator_kind{"avg", "OMPX_AVG", false, true, true},
};

} // namespace

const directive_kind *find_directive(llvm::StringRef name, bool on_target) {
    for (const auto &kind : kinds) {
        if (kind.name == name && kind.on_target == on_target) {
            return &kind;
        }
    }
    return nullptr;
}

std::string directive_names(bool on_target) {
    std::string names;
    for (const auto &kind : kinds) {
        if (kind.on_target == on_target) {
            names += (names.empty() ? "" : ", ") + kind.name.str();
        }
    }
    return names;
}

const operator_kind *find_operator(llvm::StringRef spelling) {
    for (const auto &kind : operators) {
        if (kind.spelling == spelling) {
            return &kind;
        }
    }
    return nullptr;
}

std::string operator_names() {
    std::string names;
    for (const auto &kind : operators) {
        names += (names.empty() ? "" : " ") + kind.spelling.str();
    }
    return names;
}

} // namespace diomp::pragma
