// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes within arrays of up to 32 dimensions, as runs of bytes.
#pragma once

#include "base/result.h"
#include "conduit/conduit.h"

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

/// A part of a box that is contiguous on both sides; places in bytes from the arrays' beginnings.
struct run {
    std::size_t remote = 0;
    std::size_t local = 0;
    std::size_t nbytes = 0;
};

/// Cuts a box into the longest runs that are contiguous on both sides.
class box_walk {
public:
    /// Checks the box against both arrays.
    static result<box_walk> make(const box &shape);

    /// Bytes from the array's start to the end of the last run, on each side: what must be
    /// addressable.
    [[nodiscard]] std::size_t remote_extent() const { return remote_extent_; }
    [[nodiscard]] std::size_t local_extent() const { return local_extent_; }
    [[nodiscard]] bool empty() const { return run_bytes_ == 0; }

    /// All runs are one, which for_each_run tells of.
    [[nodiscard]] bool is_contiguous() const { return outer_dimensions_ == 0; }
    /// The runs of a box that is neither empty nor contiguous. It lives as long as the walk.
    [[nodiscard]] conduit::rows rows() const {
        return {run_bytes_,
                {counts_.data(), outer_dimensions_},
                {remote_pitches_.data(), outer_dimensions_},
                {local_pitches_.data(), outer_dimensions_}};
    }
    /// Where the first of them begins, in bytes from the start of the array.
    [[nodiscard]] std::size_t remote_begin() const { return remote_begin_; }
    [[nodiscard]] std::size_t local_begin() const { return local_begin_; }

    /// Calls f(remote_offset, local_offset, nbytes) for each run, offsets in bytes.
    template <typename F>
    void for_each_run(F &&f) const {
        walk(f, 0, 0, 0);
    }

    [[nodiscard]] std::vector<run> runs() const;

private:
    template <typename F>
    void walk(F &f, std::size_t dimension, std::size_t remote, std::size_t local) const {
        remote += shape_.remote_offsets[dimension] * remote_strides_[dimension];
        local += shape_.local_offsets[dimension] * local_strides_[dimension];
        if (dimension == outer_dimensions_) {
            // The dimensions below are contiguous on both sides; their offsets still count.
            for (std::size_t inner = dimension + 1; inner < shape_.volume.size(); ++inner) {
                remote += shape_.remote_offsets[inner] * remote_strides_[inner];
                local += shape_.local_offsets[inner] * local_strides_[inner];
            }
            f(remote, local, run_bytes_);
            return;
        }
        for (std::size_t i = 0; i < shape_.volume[dimension]; ++i) {
            walk(f, dimension + 1, remote + i * remote_strides_[dimension],
                 local + i * local_strides_[dimension]);
        }
    }

    status check() const;
    void describe_runs();

    static constexpr std::size_t max_dimensions = 32;
    box shape_;
    std::array<std::size_t, max_dimensions> remote_strides_{}; ///< bytes
    std::array<std::size_t, max_dimensions> local_strides_{};
    std::size_t outer_dimensions_ = 0; ///< dimensions that need a loop
    std::size_t run_bytes_ = 0;
    std::size_t remote_extent_ = 0;
    std::size_t local_extent_ = 0;
    std::size_t remote_begin_ = 0;
    std::size_t local_begin_ = 0;
    // As conduit::rows, the fastest dimension first:
    std::array<std::size_t, max_dimensions> counts_{};
    std::array<std::ptrdiff_t, max_dimensions> remote_pitches_{};
    std::array<std::ptrdiff_t, max_dimensions> local_pitches_{};
};

} // namespace diomp::rma
