// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls with optional groups, and collectives: counts and types are taken from the arrays.
#include "array.h"
#include "caller.h"
#include "contiguous_buffer.h"

namespace diomp::fortran {
namespace {

ompx_group_t group_of(const ompx_group_t *given) {
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
    /// Runs call(dst, src) on contiguous buffers, or returns the status of a failed check.
    template <typename Call>
    int run(Call &&call) const {
        contiguous_buffer to;
        contiguous_buffer from;
        int status = status_;
        if (status == OMPX_SUCCESS) {
            status = to.load(site_, dst_);
        }
        if (status == OMPX_SUCCESS && !in_place_) {
            status = from.load(site_, src_);
        }
        if (status == OMPX_SUCCESS) {
            status = call(to.data(), in_place_ ? to.data() : from.data());
        }
        if (status == OMPX_SUCCESS) {
            to.store_back(dst_);
        }
        return status;
    }
    [[nodiscard]] const array &dst() const { return dst_; }
    [[nodiscard]] const array &src() const { return src_; }

    /// Checks a reduction's arrays: one type, which the operators support. MINLOC and MAXLOC take
    /// arrays of shape (2, ...): a value and an index of its type.
    operands &require_one_type(ompx_op_t op) {
        type_ = src_.type();
        if (status_ == OMPX_SUCCESS && (type_ == 0 || dst_.type() != type_)) {
            status_ =
                site_.fail(OMPX_ERR_ARG, "dst and src do not have one type that reductions support",
                           "pass integers, reals, complex numbers or logicals");
        }
        if (status_ == OMPX_SUCCESS && (op == OMPX_MINLOC || op == OMPX_MAXLOC)) {
            type_ = pair_type(type_);
            numbers_per_element_ = 2;
            if (type_ == 0 || !holds_pairs(dst_) || !holds_pairs(src_)) {
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
    /// Checks that `large` holds `blocks` blocks of the size of `small`, unless blocks <= 0.
    operands &require_blocks(const array &large, const array &small, int blocks) {
        if (status_ == OMPX_SUCCESS && blocks > 0 &&
            large.nbytes() != small.nbytes() * static_cast<std::size_t>(blocks)) {
            status_ = site_.fail(OMPX_ERR_MISMATCH, "the sizes of dst and src do not match",
                                 "one of them holds a block of the other's size for each member "
                                 "that it gets data from or has data for");
        }
        return *this;
    }

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
    call_site site_;
    int status_;
    ompx_type_t type_ = 0;
    std::size_t numbers_per_element_ = 1;
};

/// Number of blocks in the buffer of the root; 0, which require_blocks() ignores, on other members.
int blocks_at(int root, ompx_group_t group) {
    return ompx_group_rank(group) == root ? ompx_group_size(group) : 0;
}

/// A reduction that gives each member a result of the size of its operand.
int reduce_to_all(const char *function,
                  int (*call)(void *, const void *, std::size_t, ompx_type_t, ompx_op_t,
                              ompx_group_t),
                  CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, ompx_group_t group) {
    operands given(function, to, from);
    given.require_one_type(op).require_blocks(given.dst(), given.src(), 1);
    return given.run([&](void *dst, const void *src) {
        return call(dst, src, given.elements(given.src()), given.type(), op, group);
    });
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_fence(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_fence_group(group_of(group));
}

int diomp_fortran_barrier(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_barrier_group(group_of(group));
}

int diomp_fortran_sync(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_sync(group_of(group));
}

int diomp_fortran_bcast(CFI_cdesc_t *where, const int *root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands const given("ompx_bcast", where, nullptr);
    return given.run([&](void *dst, const void * /*src*/) {
        return ompx_bcast_from(dst, given.dst().nbytes(), root == nullptr ? 0 : *root,
                               group_of(group));
    });
}

int diomp_fortran_reduce(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, int root,
                         const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_reduce", to, from);
    given.require_one_type(op).require_blocks(given.dst(), given.src(), 1);
    return given.run([&](void *dst, const void *src) {
        return ompx_reduce(dst, src, given.elements(given.src()), given.type(), op, root,
                           group_of(group));
    });
}

int diomp_fortran_allreduce(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                            const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_allreduce", ompx_allreduce, to, from, op, group_of(group));
}

int diomp_fortran_scan(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                       const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_scan", ompx_scan, to, from, op, group_of(group));
}

int diomp_fortran_exscan(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                         const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_exscan", ompx_exscan, to, from, op, group_of(group));
}

int diomp_fortran_reduce_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                                 const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_reduce_scatter", to, from);
    given.require_one_type(op).require_blocks(given.src(), given.dst(),
                                              ompx_group_size(group_of(group)));
    return given.run([&](void *dst, const void *src) {
        return ompx_reduce_scatter(dst, src, given.elements(given.dst()), given.type(), op,
                                   group_of(group));
    });
}

int diomp_fortran_gather(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    operands given("ompx_gather", to, from);
    given.require_blocks(given.dst(), given.src(), blocks_at(root, members));
    return given.run([&](void *dst, const void *src) {
        return ompx_gather(dst, src, given.src().nbytes(), root, members);
    });
}

int diomp_fortran_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    operands given("ompx_scatter", to, from);
    given.require_blocks(given.src(), given.dst(), blocks_at(root, members));
    return given.run([&](void *dst, const void *src) {
        return ompx_scatter(dst, src, given.dst().nbytes(), root, members);
    });
}

int diomp_fortran_allgather(CFI_cdesc_t *to, CFI_cdesc_t *from, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_allgather", to, from);
    given.require_blocks(given.dst(), given.src(), ompx_group_size(group_of(group)));
    return given.run([&](void *dst, const void *src) {
        return ompx_allgather(dst, src, given.src().nbytes(), group_of(group));
    });
}

int diomp_fortran_alltoall(CFI_cdesc_t *to, CFI_cdesc_t *from, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_alltoall", to, from);
    int const members = ompx_group_size(group_of(group));
    given.require_blocks(given.dst(), given.src(), 1).require_divisible_by(members);
    return given.run([&](void *dst, const void *src) {
        return ompx_alltoall(dst, src, given.src().nbytes() / static_cast<std::size_t>(members),
                             group_of(group));
    });
}

} // extern "C"
