// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The algorithms of collective calls by name, and the interface through which another choice than
// the built-in one is made for a call.
#pragma once

#include "sync/call_signature.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace diomp::coll {

enum class algorithm : std::uint8_t {
    // On a node (select.h).
    barrier_only, ///< calls without data
    inline_data,
    staged,
    flat,
    reduce_scatter_allgather, ///< also between nodes
    zero_copy,                ///< the others where buffers are not in the arena
    // Between nodes (two_level.h).
    with_agreement,
    binomial_tree,
    chain,
    recursive_doubling,
    sliced,
    direct,
    bruck,
    by_nodes,
    pairwise,
};
/// For the log and for tuning files: "staged".
const char *name_of(algorithm method);

/// Where an algorithm moves data: among the members of a node, or between nodes.
enum class network_level : std::uint8_t { node, nodes };
/// "node", "nodes".
const char *name_of(network_level level);

/// An algorithm of a collective that can be chosen, and for which calls.
struct algorithm_row {
    sync::operation what;
    network_level level;
    algorithm method;
    std::size_t max_bytes;       ///< of a block; larger calls cannot take it
    std::size_t min_chunk_bytes; ///< 0: it has no chunks of a size that can be chosen
    std::size_t max_chunk_bytes;
    const char *condition; ///< for users; empty: none but the sizes
};
std::span<const algorithm_row> algorithm_rows();
/// "bcast", as in `ompx_bcast`.
std::string_view short_name_of(sync::operation what);

/// A call as a source of choices sees it. Equal on all members.
struct choice_facts {
    sync::operation what = sync::operation::barrier;
    network_level level = network_level::node;
    std::size_t num_members = 1; ///< of the group; at network_level::node: on the node
    std::size_t num_nodes = 1;   ///< of the group; at network_level::node: 1
    std::size_t block_bytes = 0; ///< as in call_shape
};

struct algorithm_choice {
    algorithm method = algorithm::barrier_only;
    std::size_t chunk_bytes = 0; ///< 0: the built-in size
};

/// Chooses algorithms instead of the built-in rules: a file of rules (tuning.h), or a model with
/// measured costs. All members of a group must get the same choice for the same facts. Any thread.
class algorithm_source {
public:
    virtual ~algorithm_source() = default;
    /// None: the built-in rules choose. They also do if the call cannot take the chosen algorithm.
    [[nodiscard]] virtual std::optional<algorithm_choice>
    choose(const choice_facts &facts) const = 0;
};

} // namespace diomp::coll
