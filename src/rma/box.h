// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes within arrays of up to 32 dimensions, and strided sections, as runs of bytes.
#pragma once

#include "base/result.h"
#include "transport/types.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace diomp::rma {

/// A box within an array, in elements, slowest dimension first (omp_target_memcpy_rect).
struct box {
    std::size_t element_size = 0;
    std::span<const std::size_t> volume;
    std::span<const std::size_t> remote_offsets;
    std::span<const std::size_t> local_offsets;
    std::span<const std::size_t> remote_dimensions;
    std::span<const std::size_t> local_dimensions;
};

/// Elements with constant strides of any size and sign, as in Fortran's array sections. The fastest
/// dimension comes first, strides are in bytes, pointers address the first elements.
struct section {
    std::size_t element_size = 0;
    std::span<const std::size_t> counts;
    std::span<const std::ptrdiff_t> remote_strides;
    std::span<const std::ptrdiff_t> local_strides;

    [[nodiscard]] std::size_t total_bytes() const {
        return transport::rows{element_size, counts, {}, {}}.total_bytes();
    }
};

/// A range of a box that is contiguous on both sides. Offsets in bytes from the start of each
/// array.
struct run {
    std::size_t remote = 0;
    std::size_t local = 0;
    std::size_t nbytes = 0;
};

/// Splits a box or a section into the longest runs that are contiguous on both sides.
class box_walk {
public:
    /// Checks the box against both arrays.
    static result<box_walk> make(const box &shape);
    /// Checks only the number of dimensions; the elements must exist.
    static result<box_walk> make(const section &shape);

    /// Bytes from the array's start to the end of the last run, on each side. All of them must be
    /// addressable.
    [[nodiscard]] std::size_t remote_extent() const { return remote_extent_; }
    [[nodiscard]] std::size_t local_extent() const { return local_extent_; }
    [[nodiscard]] bool empty() const { return run_bytes_ == 0; }

    /// Distance from a section's first element to its lowest address, where its array is considered
    /// to start: 0 or negative. 0 for boxes.
    [[nodiscard]] std::ptrdiff_t remote_shift() const { return remote_shift_; }
    [[nodiscard]] std::ptrdiff_t local_shift() const { return local_shift_; }

    /// Whether there is a single run.
    [[nodiscard]] bool is_contiguous() const { return num_levels_ == 0; }
    /// Whether all strides of rows() are positive. Conduits require that.
    [[nodiscard]] bool is_ascending() const { return is_ascending_; }
    /// The runs of a box that is neither empty nor contiguous. Valid as long as the box_walk.
    [[nodiscard]] transport::rows rows() const {
        return {run_bytes_,
                {counts_.data(), num_levels_},
                {remote_pitches_.data(), num_levels_},
                {local_pitches_.data(), num_levels_}};
    }
    /// Offset of the first run, in bytes from the start of the array.
    [[nodiscard]] std::size_t remote_begin() const { return remote_begin_; }
    [[nodiscard]] std::size_t local_begin() const { return local_begin_; }

    /// Calls f(remote_offset, local_offset, nbytes) for each run, offsets in bytes.
    template <typename F>
    void for_each_run(F &&f) const {
        walk(f, num_levels_, remote_begin_, local_begin_);
    }

    [[nodiscard]] std::vector<run> runs() const;

private:
    template <typename F>
    void walk(F &f, std::size_t level, std::size_t remote, std::size_t local) const {
        if (level == 0) {
            f(remote, local, run_bytes_);
            return;
        }
        --level;
        for (std::size_t i = 0; i < counts_[level]; ++i) {
            walk(f, level, remote, local);
            remote += static_cast<std::size_t>(remote_pitches_[level]); // wraps where negative
            local += static_cast<std::size_t>(local_pitches_[level]);
        }
    }

    static status check(const box &shape);
    /// Adds the next slower dimension. Merges it into the run if contiguous on both sides.
    void add_level(std::size_t count, std::ptrdiff_t remote_stride, std::ptrdiff_t local_stride);

    static constexpr std::size_t max_dimensions = 32;
    std::size_t num_levels_ = 0; ///< nested loops around a run
    std::size_t run_bytes_ = 0;
    std::size_t remote_extent_ = 0;
    std::size_t local_extent_ = 0;
    std::size_t remote_begin_ = 0;
    std::size_t local_begin_ = 0;
    std::ptrdiff_t remote_shift_ = 0;
    std::ptrdiff_t local_shift_ = 0;
    bool is_ascending_ = true;
    // [level], the fastest dimension first (see conduit::rows):
    std::array<std::size_t, max_dimensions> counts_{};
    std::array<std::ptrdiff_t, max_dimensions> remote_pitches_{};
    std::array<std::ptrdiff_t, max_dimensions> local_pitches_{};
};

} // namespace diomp::rma
