// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/algorithm.h"

#include <array>

namespace diomp::coll {
namespace {

using sync::operation;

constexpr std::array<const char *, 15> names{
    "barrier_only", "inline_data",    "staged",        "flat",     "reduce_scatter_allgather",
    "zero_copy",    "with_agreement", "binomial_tree", "chain",    "recursive_doubling",
    "sliced",       "direct",         "bruck",         "by_nodes", "pairwise"};

constexpr std::size_t any_size = SIZE_MAX;
constexpr std::size_t inline_bytes = 256;
constexpr std::size_t min_chunk = 4096;
constexpr std::size_t max_node_chunk = std::size_t{256} << 10;
constexpr std::size_t max_bcast_chunk = std::size_t{1} << 20;

constexpr const char *built_in_operators = "built-in operators but for long double";
constexpr const char *bytes_for_all = "256 bytes for all members";
constexpr const char *in_arena = "buffers in global memory; for others as without the rule";

constexpr algorithm_row on_node(operation what, algorithm method, const char *condition = "") {
    return {what, network_level::node, method, any_size, min_chunk, max_node_chunk, condition};
}
constexpr algorithm_row inline_row(operation what, const char *condition = "") {
    return {what, network_level::node, algorithm::inline_data, inline_bytes, 0, 0, condition};
}
constexpr algorithm_row between(operation what, algorithm method, std::size_t max_bytes = any_size,
                                const char *condition = "") {
    return {what, network_level::nodes, method, max_bytes, 0, 0, condition};
}
constexpr algorithm_row bcast_between(algorithm method) {
    return {operation::bcast, network_level::nodes, method, any_size,
            min_chunk,        max_bcast_chunk,      ""};
}

constexpr auto rows = std::to_array<algorithm_row>({
    inline_row(operation::bcast),
    on_node(operation::bcast, algorithm::staged),
    on_node(operation::bcast, algorithm::zero_copy, in_arena),
    inline_row(operation::reduce, built_in_operators),
    on_node(operation::reduce, algorithm::flat),
    on_node(operation::reduce, algorithm::reduce_scatter_allgather),
    on_node(operation::reduce, algorithm::zero_copy, in_arena),
    inline_row(operation::allreduce, built_in_operators),
    on_node(operation::allreduce, algorithm::flat),
    on_node(operation::allreduce, algorithm::reduce_scatter_allgather),
    on_node(operation::allreduce, algorithm::zero_copy, in_arena),
    inline_row(operation::gather),
    on_node(operation::gather, algorithm::staged),
    on_node(operation::gather, algorithm::zero_copy, in_arena),
    inline_row(operation::scatter, bytes_for_all),
    on_node(operation::scatter, algorithm::staged),
    on_node(operation::scatter, algorithm::zero_copy, in_arena),
    inline_row(operation::allgather),
    on_node(operation::allgather, algorithm::staged),
    on_node(operation::allgather, algorithm::zero_copy, in_arena),
    inline_row(operation::reduce_scatter,
               "256 bytes for all members; built-in operators but for long double"),
    on_node(operation::reduce_scatter, algorithm::flat),
    on_node(operation::reduce_scatter, algorithm::zero_copy, in_arena),
    inline_row(operation::alltoall, bytes_for_all),
    on_node(operation::alltoall, algorithm::staged),
    on_node(operation::alltoall, algorithm::zero_copy, in_arena),
    between(operation::bcast, algorithm::with_agreement, std::size_t{64} << 10),
    bcast_between(algorithm::binomial_tree),
    bcast_between(algorithm::chain),
    between(operation::reduce, algorithm::with_agreement, std::size_t{8} << 10, built_in_operators),
    between(operation::reduce, algorithm::binomial_tree),
    between(operation::allreduce, algorithm::with_agreement, std::size_t{64} << 10,
            "built-in operators but for long double; over 8K memory for stage buffers"),
    between(operation::allreduce, algorithm::recursive_doubling),
    between(operation::allreduce, algorithm::reduce_scatter_allgather, any_size,
            "elements whose size divides 256K"),
    between(operation::allreduce, algorithm::sliced, any_size,
            "more than 256 bytes, and two members or more on each node"),
    between(operation::allgather, algorithm::direct, any_size,
            "members of each node have consecutive ranks"),
    between(operation::allgather, algorithm::bruck, any_size,
            "members of each node have consecutive ranks"),
    between(operation::alltoall, algorithm::bruck, any_size, "one member on each node"),
    between(operation::alltoall, algorithm::by_nodes, any_size,
            "equally many members (2 or more) with consecutive ranks on each node, and space in "
            "their stage buffers"),
    between(operation::alltoall, algorithm::pairwise),
});

} // namespace

const char *name_of(algorithm method) { return names[static_cast<std::size_t>(method)]; }

const char *name_of(network_level level) { return level == network_level::node ? "node" : "nodes"; }

std::span<const algorithm_row> algorithm_rows() { return rows; }

std::string_view short_name_of(operation what) {
    std::string_view const name = sync::name_of(what);
    constexpr std::string_view prefix = "ompx_";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

} // namespace diomp::coll
