// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/call_signature.h"

#include "base/constant_names.h"

#include <fmt/core.h>

#include <array>

namespace diomp::sync {
namespace {

/// Names of a signature's fields in the C interface.
struct operation_row {
    const char *name;
    const char *amount; ///< nullptr: the call has none
    const char *type;   ///< nullptr: none, or a data type
};

/// The amount of calls whose members pass the sizes of all blocks.
constexpr const char *hash_of_sizes = "hash of nbytes";

constexpr std::array<operation_row, 34> rows{{
    {"different calls by its endpoints", nullptr, nullptr},
    {"ompx_barrier", nullptr, nullptr},
    {"ompx_bcast", "nbytes", nullptr},
    {"ompx_reduce", "count", nullptr},
    {"ompx_allreduce", "count", nullptr},
    {"ompx_gather", "nbytes", nullptr},
    {"ompx_scatter", "nbytes", nullptr},
    {"ompx_allgather", "nbytes", nullptr},
    {"ompx_reduce_scatter", "count", nullptr},
    {"ompx_alltoall", "nbytes", nullptr},
    {"ompx_group_create", nullptr, nullptr},
    {"ompx_group_split", nullptr, nullptr},
    {"ompx_group_merge", nullptr, nullptr},
    {"ompx_group_free", nullptr, nullptr},
    {"symmetric allocation", "nbytes", "alignment"},
    {"asymmetric allocation", nullptr, "alignment"},
    {"collective free", "offset", nullptr},
    {"reallocation", "nbytes", "block"},
    {"ompx_finalize", nullptr, nullptr},
    {"ompx_gatherv", hash_of_sizes, nullptr},
    {"ompx_scatterv", hash_of_sizes, nullptr},
    {"ompx_allgatherv", hash_of_sizes, nullptr},
    {"ompx_alltoallv", nullptr, nullptr},
    {"ompx_scan", "count", nullptr},
    {"ompx_exscan", "count", nullptr},
    {"symmetric ompx_target_alloc", "nbytes", nullptr},
    {"asymmetric ompx_target_alloc", nullptr, nullptr},
    {"ompx_target_free", "offset", nullptr},
    {"ompx_sync", nullptr, nullptr},
    {"ompx_register_symmetric", "nbytes", nullptr},
    {"ompx_unregister_symmetric", "range", nullptr},
    {"ompx_group_split_node", nullptr, nullptr},
    {"ompx_group_split_endpoints", nullptr, nullptr},
    {"ompx_group_dup", nullptr, nullptr},
}};

} // namespace

bool carries_data(operation what) {
    switch (what) {
    case operation::bcast:
    case operation::reduce:
    case operation::allreduce:
    case operation::gather:
    case operation::scatter:
    case operation::allgather:
    case operation::reduce_scatter:
    case operation::alltoall:
    case operation::gatherv:
    case operation::scatterv:
    case operation::allgatherv:
    case operation::alltoallv:
    case operation::scan:
    case operation::exscan:
        return true;
    default:
        return false;
    }
}

bool completes_late(operation what) {
    return what == operation::barrier || what == operation::sync || what == operation::finalize ||
           what == operation::group_free;
}

const char *name_of(operation what) { return rows[static_cast<std::size_t>(what)].name; }

bool call_signature::are_equivalent(const call_signature &left, const call_signature &right) {
    bool const same_device = left.device() == right.device() ||
                             (left.reduction != 0 && left.reduction == right.reduction);
    bool const same_offset = left.offset_hash() == right.offset_hash() || left.offset_hash() == 0 ||
                             right.offset_hash() == 0;
    return left.what == right.what && left.amount == right.amount && same_device && same_offset;
}

/// "symmetric ompx_target_alloc(device=1, nbytes=8)".
static std::string describe_on_device(const call_signature &call, const operation_row &row) {
    std::string const device_index =
        call.reduction == 0 ? "" : fmt::format(", number {} of its own", call.reduction - 1);
    return row.amount == nullptr
               ? fmt::format("{}(device={}{})", row.name, call.device(), device_index)
               : fmt::format("{}(device={}{}, {}={})", row.name, call.device(), device_index,
                             row.amount, call.amount);
}

std::string describe(const call_signature &call) {
    auto const index = static_cast<std::size_t>(call.what);
    if (index >= rows.size()) {
        return fmt::format("unknown call {}", index);
    }
    const operation_row &row = rows[index];
    if (call.names_device()) {
        return describe_on_device(call, row);
    }
    std::string arguments;
    auto const add = [&arguments](const std::string &text) {
        arguments += (arguments.empty() ? "" : ", ") + text;
    };
    if (call.root != call_signature::no_root) {
        add(fmt::format("root={}", call.root));
    }
    if (row.type == nullptr && call.root_endpoint() != 0) {
        add(fmt::format("the root's endpoint={}", call.root_endpoint()));
    }
    if (row.amount != nullptr) {
        add(fmt::format("{}={}", row.amount, call.amount));
    }
    if (row.type != nullptr) {
        add(fmt::format("{}={}", row.type,
                        call.names_offset() ? std::uint32_t{1} << (call.type >> 24) : call.type));
    } else if ((call.type & call_signature::type_mask) != 0) {
        add("type=" + type_name(static_cast<ompx_type_t>(call.type & call_signature::type_mask)));
    }
    if (call.reduction != 0) {
        add(call.reduction == call_signature::user_operator ? "op=user-defined"
            : call.reduction == call_signature::ordered_user_operator
                ? "op=user-defined, not commutative"
                : "op=" + operator_name(call.reduction));
    }
    return fmt::format("{}({})", row.name, arguments);
}

error mismatch_error(world_rank one, const call_signature &made, world_rank other,
                     const call_signature &made_by_other) {
    call_signature elsewhere = made_by_other;
    elsewhere.type = (made_by_other.type & ~call_signature::type_mask) | made.offset_hash();
    if (made.names_offset() && made == elsewhere) {
        return {OMPX_ERR_MISMATCH,
                fmt::format("{} has another offset on rank {} than on rank {}: an earlier "
                            "allocation or free has failed on one of them only",
                            describe(made), one.value(), other.value()),
                "end the job; raise DIOMP_TIMEOUT if the ranks are only slow"};
    }
    auto const index = static_cast<std::size_t>(made.what);
    bool const sizes_differ = index < rows.size() && rows[index].amount == hash_of_sizes &&
                              made.what == made_by_other.what &&
                              made.amount != made_by_other.amount;
    return {OMPX_ERR_MISMATCH,
            fmt::format("ranks disagree about a collective call: rank {} made {}, rank {} made {}",
                        one.value(), describe(made), other.value(), describe(made_by_other)),
            sizes_differ
                ? "all members must pass the same sizes of the blocks of all members"
                : "all members of a group must make the same collective calls in the same order"};
}

} // namespace diomp::sync
