// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes and places of blocks, a block for each member, from the arrays of a program.
#pragma once

#include "operands.h"

#include <cstdint>
#include <cstdlib>

namespace diomp::fortran {

/// The arguments `counts` and `displs` of a collective, in bytes.
class block_sizes {
public:
    block_sizes() = default;
    ~block_sizes() { std::free(nbytes_); }
    block_sizes(const block_sizes &) = delete;
    block_sizes &operator=(const block_sizes &) = delete;

    /// Checks both arguments, integers with a value for each of the `members`, and converts them;
    /// failures go to `call`. `displs`: null if the blocks are contiguous. `members`: an error
    /// status if negative.
    void load(operands &call, const CFI_cdesc_t *counts, const CFI_cdesc_t *displs,
              std::size_t element_bytes, int members);

    [[nodiscard]] const std::size_t *nbytes() const { return nbytes_; }
    /// Null: the blocks are contiguous.
    [[nodiscard]] const std::size_t *offsets() const { return offsets_; }
    /// Bytes of the shortest buffer that holds all blocks.
    [[nodiscard]] std::size_t end() const { return end_; }

private:
    /// Numbers of elements, as bytes; false if one is negative or too large.
    static bool convert(const array &from, std::size_t element_bytes, std::size_t *to);

    std::size_t *nbytes_ = nullptr;
    std::size_t *offsets_ = nullptr;
    std::size_t end_ = 0;
};

} // namespace diomp::fortran
