// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/box.h"

#include <fmt/core.h>

namespace diomp::rma {

status box_walk::check() const {
    for (std::size_t i = 0; i < shape_.volume.size(); ++i) {
        auto const check_side = [&](const char *side, std::size_t offset,
                                    std::size_t dimension) -> status {
            if (shape_.volume[i] > dimension || offset > dimension - shape_.volume[i]) {
                return error(
                    OMPX_ERR_RANGE,
                    fmt::format(
                        "in dimension {} the box covers elements {} to {} of a {} array of {}", i,
                        offset, offset + shape_.volume[i], side, dimension),
                    "volume + offset must not exceed the dimension");
            }
            return {};
        };
        DIOMP_TRY(check_side("remote", shape_.remote_offsets[i], shape_.remote_dimensions[i]));
        DIOMP_TRY(check_side("local", shape_.local_offsets[i], shape_.local_dimensions[i]));
    }
    return {};
}

result<box_walk> box_walk::make(const box &shape) {
    std::size_t const n = shape.volume.size();
    if (n == 0 || n > max_dimensions || shape.element_size == 0) {
        return error(
            OMPX_ERR_ARG,
            fmt::format(
                "a box has 1 to {} dimensions and elements of at least one byte, not {} and {}",
                max_dimensions, n, shape.element_size));
    }
    box_walk walk;
    walk.shape_ = shape;
    DIOMP_TRY(walk.check());
    bool overflow = false;
    auto const times = [&overflow](std::size_t a, std::size_t b) {
        std::size_t product = 0;
        overflow = __builtin_mul_overflow(a, b, &product) || overflow;
        return product;
    };
    std::size_t remote = shape.element_size;
    std::size_t local = shape.element_size;
    walk.run_bytes_ = shape.element_size;
    walk.outer_dimensions_ = n - 1;
    bool contiguous = true;
    walk.remote_extent_ = shape.element_size;
    walk.local_extent_ = shape.element_size;
    bool empty = false;
    for (std::size_t i = n; i-- > 0;) {
        walk.remote_strides_[i] = remote;
        walk.local_strides_[i] = local;
        empty = empty || shape.volume[i] == 0;
        if (contiguous) {
            walk.run_bytes_ = times(walk.run_bytes_, shape.volume[i]);
            walk.outer_dimensions_ = i;
            // The next slower dimension joins the run only if this one is taken whole on both
            // sides.
            contiguous = shape.volume[i] == shape.remote_dimensions[i] &&
                         shape.volume[i] == shape.local_dimensions[i];
        }
        if (shape.volume[i] > 0) {
            walk.remote_extent_ += times(shape.remote_offsets[i] + shape.volume[i] - 1, remote);
            walk.local_extent_ += times(shape.local_offsets[i] + shape.volume[i] - 1, local);
        }
        remote = times(remote, shape.remote_dimensions[i]);
        local = times(local, shape.local_dimensions[i]);
    }
    if (overflow) {
        return error(OMPX_ERR_ARG,
                     "the arrays that the box lies in are larger than the address space");
    }
    if (empty) {
        walk.run_bytes_ = 0;
    }
    walk.describe_runs();
    return walk;
}

std::vector<run> box_walk::runs() const {
    std::vector<run> all;
    if (!empty()) {
        for_each_run([&](std::size_t remote, std::size_t local, std::size_t nbytes) {
            all.push_back({remote, local, nbytes});
        });
    }
    return all;
}

void box_walk::describe_runs() {
    for (std::size_t i = 0; i < shape_.volume.size(); ++i) {
        remote_begin_ += shape_.remote_offsets[i] * remote_strides_[i];
        local_begin_ += shape_.local_offsets[i] * local_strides_[i];
    }
    for (std::size_t level = 0; level < outer_dimensions_; ++level) {
        std::size_t const dimension = outer_dimensions_ - 1 - level;
        counts_[level] = shape_.volume[dimension];
        remote_pitches_[level] = static_cast<std::ptrdiff_t>(remote_strides_[dimension]);
        local_pitches_[level] = static_cast<std::ptrdiff_t>(local_strides_[dimension]);
    }
}

} // namespace diomp::rma
