// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of collectives: their checks, and contiguous copies of sections.
#pragma once

#include "array.h"
#include "contiguous_buffer.h"

namespace diomp::fortran {

inline ompx_group_t group_of(const ompx_group_t *given) {
    return given == nullptr ? ompx_group_world : *given;
}

/// dst and src of a call, with contiguous copies of sections; an absent src means in place.
class operands {
public:
    operands(const char *function, const CFI_cdesc_t *to, const CFI_cdesc_t *from)
        : dst_(to), src_(from == nullptr ? to : from), in_place_(from == nullptr),
          site_(function, dst_, src_), status_(check_end(site_, dst_, "dst")) {
        if (status_ == OMPX_SUCCESS) {
            status_ = check_end(site_, src_, "src");
        }
    }
    /// Says whether the call writes dst on this member. Otherwise dst is not checked as the result
    /// of a reduction, and not written: another rank may put data there meanwhile.
    operands &writes_dst_if(bool is_writer) {
        writes_dst_ = is_writer;
        return *this;
    }
    /// Says whether the call reads src on this member; otherwise src is not copied.
    operands &reads_src_if(bool is_reader) {
        reads_src_ = is_reader;
        return *this;
    }
    /// Runs call(dst, src) on contiguous buffers, or returns the status of a failed check. A buffer
    /// that the call does not use is passed as it is.
    template <typename Call>
    int run(Call &&call) const {
        contiguous_buffer to;
        contiguous_buffer from;
        int status = status_;
        if (status == OMPX_SUCCESS && uses_dst()) {
            status = to.load(site_, dst_);
        }
        if (status == OMPX_SUCCESS && !in_place_ && reads_src_) {
            status = from.load(site_, src_);
        }
        if (status == OMPX_SUCCESS) {
            void *const dst = uses_dst() ? to.data() : dst_.data();
            status = call(dst, in_place_ ? dst : reads_src_ ? from.data() : src_.data());
        }
        if (status == OMPX_SUCCESS && writes_dst_) {
            to.store_back(dst_);
        }
        return status;
    }
    /// run() for calls that return before their end, or on device memory: sections are an error.
    template <typename Call>
    int run_contiguous(Call &&call) const {
        int status = status_;
        if (status == OMPX_SUCCESS && uses_dst()) {
            status = check_contiguous(site_, dst_, "dst");
        }
        if (status == OMPX_SUCCESS && reads_src_) {
            status = check_contiguous(site_, src_, "src");
        }
        return status == OMPX_SUCCESS ? call(dst_.data(), src_.data()) : status;
    }
    [[nodiscard]] const array &dst() const { return dst_; }
    [[nodiscard]] const array &src() const { return src_; }

    /// Checks a reduction's arrays: one type, which the operators support. MINLOC and MAXLOC take
    /// arrays of shape (2, ...): a value and an index of its type.
    operands &require_one_type(ompx_op_t op) {
        type_ = src_.type();
        if (status_ == OMPX_SUCCESS && (type_ == 0 || (writes_dst_ && dst_.type() != type_))) {
            status_ =
                site_.fail(OMPX_ERR_ARG, "dst and src do not have one type that reductions support",
                           "pass integers of up to 8 bytes, reals of 4 or 8 bytes or of C's long "
                           "double, complex numbers of such of 4 or 8 bytes, or logicals");
        }
        if (status_ == OMPX_SUCCESS && (op == OMPX_MINLOC || op == OMPX_MAXLOC)) {
            type_ = pair_type(type_);
            numbers_per_element_ = 2;
            if (type_ == 0 || (writes_dst_ && !holds_pairs(dst_)) || !holds_pairs(src_)) {
                status_ = site_.fail(OMPX_ERR_ARG, "the arrays do not hold values and indices",
                                     "pass arrays of shape (2, ...) of integer or real of 4 or 8 "
                                     "bytes, the value first");
            }
        }
        return *this;
    }
    /// Of a reduction, after require_one_type().
    [[nodiscard]] ompx_type_t type() const { return type_; }
    [[nodiscard]] std::size_t elements(const array &of) const {
        return of.count() / numbers_per_element_;
    }
    /// Checks the arrays of a call that copies, where the caller uses both.
    operands &require_same_type() {
        if (status_ == OMPX_SUCCESS) {
            status_ = check_types(site_, dst_, src_);
        }
        return *this;
    }
    /// Checks that `large` holds `blocks` blocks of the size of `small`, unless blocks <= 0.
    operands &require_blocks(const array &large, const array &small, int blocks) {
        if (blocks > 0) {
            require_same_type();
        }
        if (status_ == OMPX_SUCCESS && blocks > 0 &&
            large.nbytes() != small.nbytes() * static_cast<std::size_t>(blocks)) {
            status_ = site_.fail(OMPX_ERR_MISMATCH, "the sizes of dst and src do not match",
                                 "one of them holds a block of the other's size for each member "
                                 "that it gets data from or has data for");
        }
        return *this;
    }

    /// Fails with `status` unless `is_met`.
    operands &require(bool is_met, int status, const char *what, const char *remedy) {
        if (status_ == OMPX_SUCCESS && !is_met) {
            status_ = site_.fail(status, what, remedy);
        }
        return *this;
    }
    /// Whether all checks so far have succeeded.
    [[nodiscard]] bool is_valid() const { return status_ == OMPX_SUCCESS; }

    /// Checks that src divides into one block per member. A negative number is an error status.
    operands &require_divisible_by(int members) {
        if (status_ == OMPX_SUCCESS && members < 1) {
            status_ = members;
        }
        if (status_ == OMPX_SUCCESS && src_.count() % static_cast<std::size_t>(members) != 0) {
            status_ = site_.fail(OMPX_ERR_MISMATCH, "src does not divide into a block per member",
                                 "pass as many elements for each member of the group");
        }
        return *this;
    }

private:
    [[nodiscard]] bool uses_dst() const { return writes_dst_ || in_place_; }
    static ompx_type_t pair_type(ompx_type_t of) {
        switch (of) {
        case OMPX_INT32:
            return OMPX_2INT;
        case OMPX_INT64:
            return OMPX_2INT64;
        case OMPX_FLOAT:
            return OMPX_2FLOAT;
        case OMPX_DOUBLE:
            return OMPX_2DOUBLE;
        default:
            return 0;
        }
    }
    static bool holds_pairs(const array &given) {
        return given.rank() > 0 && given.dim(0).extent == 2;
    }

    array dst_;
    array src_;
    bool in_place_;
    bool writes_dst_ = true;
    bool reads_src_ = true;
    call_site site_;
    int status_;
    ompx_type_t type_ = 0;
    std::size_t numbers_per_element_ = 1;
};

/// Number of blocks in the buffer of the root; 0, which require_blocks() ignores, on other members.
inline int blocks_at(int root, ompx_group_t group) {
    return ompx_group_rank(group) == root ? ompx_group_size(group) : 0;
}

} // namespace diomp::fortran
