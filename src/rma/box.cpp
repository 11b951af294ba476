// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/box.h"

#include <fmt/core.h>

namespace diomp::rma {
namespace {

/// Multiplies, and records whether any product has overflowed.
class checked_product {
public:
    std::size_t operator()(std::size_t a, std::size_t b) {
        std::size_t product = 0;
        overflow_ = __builtin_mul_overflow(a, b, &product) || overflow_;
        return product;
    }
    [[nodiscard]] bool has_overflowed() const { return overflow_; }

private:
    bool overflow_ = false;
};

status check_form(std::size_t num_dimensions, std::size_t max_dimensions,
                  std::size_t element_size) {
    if (num_dimensions > max_dimensions || element_size == 0) {
        return error(
            OMPX_ERR_ARG,
            fmt::format(
                "a box has 1 to {} dimensions and elements of at least one byte, not {} and {}",
                max_dimensions, num_dimensions, element_size),
            "pass the number of dimensions, and the size of an element in bytes");
    }
    return {};
}

} // namespace

status box_walk::check(const box &shape) {
    for (std::size_t i = 0; i < shape.volume.size(); ++i) {
        auto const check_side = [&](const char *side, std::size_t offset,
                                    std::size_t dimension) -> status {
            if (shape.volume[i] > dimension || offset > dimension - shape.volume[i]) {
                return error(
                    OMPX_ERR_RANGE,
                    fmt::format(
                        "in dimension {} the box covers elements {} to {} of a {} array of {}", i,
                        offset, offset + shape.volume[i], side, dimension),
                    "volume + offset must not exceed the dimension");
            }
            return {};
        };
        DIOMP_TRY(check_side("remote", shape.remote_offsets[i], shape.remote_dimensions[i]));
        DIOMP_TRY(check_side("local", shape.local_offsets[i], shape.local_dimensions[i]));
    }
    return {};
}

void box_walk::add_level(std::size_t count, std::ptrdiff_t remote_stride,
                         std::ptrdiff_t local_stride) {
    auto const run = static_cast<std::ptrdiff_t>(run_bytes_);
    if (count == 1) {
        return;
    }
    if (num_levels_ == 0 && remote_stride == run && local_stride == run) {
        run_bytes_ *= count;
        return;
    }
    counts_[num_levels_] = count;
    remote_pitches_[num_levels_] = remote_stride;
    local_pitches_[num_levels_] = local_stride;
    ++num_levels_;
}

result<box_walk> box_walk::make(const box &shape) {
    std::size_t const n = shape.volume.size();
    DIOMP_TRY(check_form(n == 0 ? max_dimensions + 1 : n, max_dimensions, shape.element_size));
    DIOMP_TRY(check(shape));
    box_walk walk;
    checked_product times;
    bool empty = false;
    std::size_t remote = shape.element_size;
    std::size_t local = shape.element_size;
    walk.run_bytes_ = shape.element_size;
    walk.remote_extent_ = shape.element_size;
    walk.local_extent_ = shape.element_size;
    for (std::size_t i = n; i-- > 0;) {
        std::size_t const count = shape.volume[i];
        empty = empty || count == 0;
        if (count > 0) {
            walk.remote_extent_ += times(shape.remote_offsets[i] + count - 1, remote);
            walk.local_extent_ += times(shape.local_offsets[i] + count - 1, local);
        }
        walk.remote_begin_ += shape.remote_offsets[i] * remote;
        walk.local_begin_ += shape.local_offsets[i] * local;
        walk.add_level(count, static_cast<std::ptrdiff_t>(remote),
                       static_cast<std::ptrdiff_t>(local));
        remote = times(remote, shape.remote_dimensions[i]);
        local = times(local, shape.local_dimensions[i]);
    }
    if (times.has_overflowed()) {
        return error(OMPX_ERR_ARG,
                     "the arrays that the box lies in are larger than the address space",
                     "check the arithmetic that element_size and dimensions come from");
    }
    if (empty) {
        walk.run_bytes_ = 0;
    }
    return walk;
}

result<box_walk> box_walk::make(const section &shape) {
    DIOMP_TRY(check_form(shape.counts.size(), max_dimensions, shape.element_size));
    box_walk walk;
    walk.run_bytes_ = shape.element_size;
    std::ptrdiff_t remote_last = 0; // offset of the highest element from the lowest
    std::ptrdiff_t local_last = 0;
    for (std::size_t i = 0; i < shape.counts.size(); ++i) {
        if (shape.counts[i] == 0) {
            return box_walk();
        }
        // Runs are in ascending order of the remote addresses.
        auto const steps = static_cast<std::ptrdiff_t>(shape.counts[i] - 1);
        std::ptrdiff_t remote = shape.remote_strides[i];
        std::ptrdiff_t local = shape.local_strides[i];
        if (remote < 0) {
            walk.remote_shift_ += steps * remote;
            walk.local_begin_ += static_cast<std::size_t>(steps * local);
            remote = -remote;
            local = -local;
        }
        if (shape.local_strides[i] < 0) {
            walk.local_shift_ += steps * shape.local_strides[i];
        }
        remote_last += steps * remote;
        local_last += steps * (local < 0 ? -local : local);
        walk.is_ascending_ = walk.is_ascending_ && (local > 0 || steps == 0);
        walk.add_level(shape.counts[i], remote, local);
    }
    // Relative to the lowest address, not to the first element.
    walk.local_begin_ -= static_cast<std::size_t>(walk.local_shift_);
    walk.remote_extent_ = static_cast<std::size_t>(remote_last) + shape.element_size;
    walk.local_extent_ = static_cast<std::size_t>(local_last) + shape.element_size;
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

} // namespace diomp::rma
