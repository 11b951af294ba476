// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Extents of grids: factors of a number of ranks that are as close to each other as possible.
#pragma once

#include "base/result.h"

#include <optional>
#include <span>
#include <vector>

namespace diomp::cart {

/// `count` factors of n, in descending order: the largest is as small as possible, then the second,
/// and so on. n and count are positive.
std::vector<int> balanced_factors(int n, std::size_t count);
/// Sets the zeros of `dims` so that all multiply to num_ranks. OMPX_ERR_ARG if that is impossible.
status choose_dims(int num_ranks, std::span<int> dims);
/// Which part of each extent a node of node_size members takes: factors of node_size that divide
/// the dims, as close to each other as possible. nullopt: there are none.
std::optional<std::vector<int>> node_block(int node_size, std::span<const int> dims);

} // namespace diomp::cart
