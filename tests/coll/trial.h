// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One collective call with its buffers, and the check of what it left there. How the call is made
// (C interface, or the class in a unit test) is up to the caller.
#pragma once

#include "coll/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace diomp::test {

enum class kind {
    bcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    reduce_scatter,
    alltoall,
    scan,
    exscan
};
inline constexpr std::uint64_t num_kinds = 10;
inline constexpr std::uint64_t num_without_scans = 8;

struct trial {
    std::uint64_t number = 0; ///< unique; seeds the values
    kind what = kind::bcast;
    ompx_type_t type = OMPX_INT32;
    ompx_op_t op = OMPX_SUM;
    std::size_t count = 0; ///< elements per block
    int root = 0;
    bool in_place = false;

    [[nodiscard]] bool reduces() const {
        return what == kind::reduce || what == kind::allreduce || what == kind::reduce_scatter ||
               what == kind::scan || what == kind::exscan;
    }
    [[nodiscard]] bool has_root() const {
        return what == kind::bcast || what == kind::reduce || what == kind::gather ||
               what == kind::scatter;
    }
    [[nodiscard]] std::size_t unit() const { return ompx_type_size(type); }
};

inline std::string to_string(const trial &t) {
    constexpr const char *names[] = {"bcast",   "reduce",    "allreduce",      "gather",
                                     "scatter", "allgather", "reduce_scatter", "alltoall",
                                     "scan",    "exscan"};
    return std::string(names[static_cast<int>(t.what)]) + " #" + std::to_string(t.number) +
           " type " + std::to_string(t.type) + " op " + std::to_string(t.op) + " count " +
           std::to_string(t.count) + " root " + std::to_string(t.root) +
           (t.in_place ? " in place" : "");
}

/// Draws a trial. `random` must be in the same state on all members.
inline trial draw(std::mt19937_64 &random, int num_members, std::size_t most_bytes,
                  std::uint64_t kinds = num_kinds) {
    auto const below = [&random](std::uint64_t limit) { return random() % limit; };
    trial t;
    t.number = random();
    t.what = static_cast<kind>(below(kinds));
    do {
        t.type = static_cast<ompx_type_t>(OMPX_INT8 + below(16));
        t.op = static_cast<ompx_op_t>(OMPX_SUM + below(9));
    } while (!makes_sense(t.type, t.op));
    // Sizes from 0 to most_bytes, all magnitudes equally likely.
    double const exponent = static_cast<double>(below(1000)) / 999.0;
    auto const nbytes =
        static_cast<std::size_t>(std::pow(static_cast<double>(most_bytes) + 1, exponent)) - 1;
    t.count = nbytes / t.unit();
    t.root = static_cast<int>(below(static_cast<std::uint64_t>(num_members)));
    t.in_place = below(3) == 0;
    return t;
}

// The copies to and from a call's buffers are: they are calls of memcpy and memcmp.
DIOMP_NOT_INSTRUMENTED_BEGIN
/// The buffers of one member; storage is given (private or global memory, 64 bytes aligned).
class trial_buffers {
public:
    static constexpr std::size_t guard_bytes = 64;
    /// Storage that a trial needs.
    static std::size_t storage_bytes(const trial &t, std::size_t num_members) {
        return 2 * (num_members * round_up(t.count * t.unit()) + 2 * guard_bytes);
    }

    trial_buffers(const trial &t, std::size_t num_members, std::size_t self, std::byte *storage)
        : t_(t), n_(num_members), self_(self), block_(t.count * t.unit()) {
        std::size_t const half = storage_bytes(t, num_members) / 2;
        std::memset(storage, 0x5a, 2 * half);
        dst_ = storage;
        src_ = storage + half;
        place();
        fill();
    }

    [[nodiscard]] void *dst() const { return has_dst() ? dst_ : nullptr; }
    [[nodiscard]] const void *src() const { return has_src() ? src_ : nullptr; }

    /// Reports the first wrong element.
    void check() const {
        if (!has_dst() || (t_.what == kind::exscan && self_ == 0)) {
            return;
        }
        std::size_t const blocks =
            t_.what == kind::gather || t_.what == kind::allgather || t_.what == kind::alltoall ? n_
                                                                                               : 1;
        std::vector<std::byte> expected(block_ + 1); // not null for no elements
        for (std::size_t block = 0; block < blocks; ++block) {
            write_expected(block, expected.data());
            const std::byte *const got = dst_ + block * block_;
            if (std::memcmp(got, expected.data(), block_) == 0) {
                continue;
            }
            for (std::size_t i = 0; i < t_.count; ++i) {
                std::size_t const at = i * t_.unit();
                if (!equal_elements(got + at, expected.data() + at, t_.type)) {
                    ADD_FAILURE() << to_string(t_) << ": member " << self_ << " of " << n_
                                  << ", block " << block << ", element " << i << " is wrong";
                    return;
                }
            }
        }
        if (!t_.in_place) {
            for (std::size_t i = 0; i < guard_bytes; ++i) {
                if (dst_[blocks * block_ + i] != std::byte{0x5a}) {
                    ADD_FAILURE() << to_string(t_) << ": wrote past the end at member " << self_;
                    return;
                }
            }
        }
    }

private:
    static std::size_t round_up(std::size_t nbytes) { return (nbytes + 63) / 64 * 64; }
    [[nodiscard]] bool is_root() const { return static_cast<std::size_t>(t_.root) == self_; }
    [[nodiscard]] bool has_dst() const {
        return is_root() || (t_.what != kind::reduce && t_.what != kind::gather);
    }
    [[nodiscard]] bool has_src() const {
        return t_.what != kind::bcast && (is_root() || t_.what != kind::scatter);
    }
    [[nodiscard]] std::size_t src_blocks() const {
        bool const many = t_.what == kind::scatter || t_.what == kind::alltoall ||
                          t_.what == kind::reduce_scatter;
        return many ? n_ : 1;
    }

    /// In place as diomp.h defines it for each call.
    void place() {
        if (!t_.in_place || t_.what == kind::bcast) {
            return;
        }
        if (t_.what == kind::allgather || (t_.what == kind::gather && is_root())) {
            src_ = dst_ + self_ * block_;
        } else if (t_.what == kind::scatter) {
            if (is_root()) {
                dst_ = src_ + self_ * block_;
            }
        } else if (t_.what != kind::gather && (t_.what != kind::reduce || is_root())) {
            src_ = dst_;
        }
    }

    void fill() {
        std::byte *const target = t_.what == kind::bcast ? dst_ : src_;
        if (t_.what == kind::bcast ? !is_root() : !has_src()) {
            return;
        }
        std::vector<std::byte> bytes(block_ + 1);
        for (std::size_t block = 0; block < src_blocks(); ++block) {
            write_brought(block, bytes.data());
            std::memcpy(target + block * block_, bytes.data(), block_);
        }
    }

    void write_brought(std::size_t block, std::byte *to) const {
        std::size_t const unit = t_.unit();
        for (std::size_t i = 0; i < t_.count; ++i) {
            encode(to + i * unit, brought(t_.number + block, self_, i, t_.type), t_.type);
        }
    }

    void write_expected(std::size_t block, std::byte *to) const {
        std::size_t const unit = t_.unit();
        for (std::size_t i = 0; i < t_.count; ++i) {
            encode(to + i * unit, expected_of(block, i), t_.type);
        }
    }

    /// Element `i` of what a member brings for a block.
    [[nodiscard]] value from(std::size_t member, std::size_t block, std::size_t i) const {
        return brought(t_.number + block, member, i, t_.type);
    }

    [[nodiscard]] value expected_of(std::size_t block, std::size_t i) const {
        auto const root = static_cast<std::size_t>(t_.root);
        switch (t_.what) {
        case kind::bcast:
            return from(root, 0, i);
        case kind::scatter:
            return from(root, self_, i);
        case kind::gather:
        case kind::allgather:
            return from(block, 0, i);
        case kind::alltoall:
            return from(block, self_, i);
        default:
            break;
        }
        std::size_t const of_block = t_.what == kind::reduce_scatter ? self_ : 0;
        std::size_t const num = t_.what == kind::scan     ? self_ + 1
                                : t_.what == kind::exscan ? self_
                                                          : n_;
        value result = from(0, of_block, i);
        for (std::size_t member = 1; member < num; ++member) {
            result = combine(result, from(member, of_block, i), t_.op);
        }
        return result;
    }

    trial t_;
    std::size_t n_;
    std::size_t self_;
    std::size_t block_;
    std::byte *dst_ = nullptr;
    std::byte *src_ = nullptr;
};
DIOMP_NOT_INSTRUMENTED_END

} // namespace diomp::test
