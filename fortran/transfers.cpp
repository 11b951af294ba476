// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put, get and related calls. Contiguous data on both sides is a plain transfer; sections of one
// shape are transferred by their strides.
#include "array.h"
#include "caller.h"
#include "contiguous_buffer.h"
#include "diomp/binding.hpp"

#include <cstdio>
#include <initializer_list>

namespace diomp::fortran {
namespace {

/// The dimensions with an extent other than 1.
struct shape {
    int num_dims = 0;
    std::size_t counts[CFI_MAX_RANK];
    std::ptrdiff_t strides[CFI_MAX_RANK];

    explicit shape(const array &of) {
        for (int i = 0; i < of.rank(); ++i) {
            if (of.dim(i).extent != 1) {
                counts[num_dims] = static_cast<std::size_t>(of.dim(i).extent);
                strides[num_dims++] = of.dim(i).sm;
            }
        }
    }
};

bool is_same(const shape &a, const shape &b) {
    bool same = a.num_dims == b.num_dims;
    for (int i = 0; same && i < a.num_dims; ++i) {
        same = a.counts[i] == b.counts[i];
    }
    return same;
}

int check_pair(const call_site &site, const array &dst, const array &src) {
    if (int const status = check_end(site, dst, "dst"); status != OMPX_SUCCESS) {
        return status;
    }
    if (int const status = check_end(site, src, "src"); status != OMPX_SUCCESS) {
        return status;
    }
    if (dst.is_address() != src.is_address()) {
        return site.fail(OMPX_ERR_ARG, "one side is a type(c_ptr), an address without a shape",
                         "make an array of it: call c_f_pointer(address, array, shape)");
    }
    if (int const status = check_types(site, dst, src); status != OMPX_SUCCESS) {
        return status;
    }
    if (dst.nbytes() != src.nbytes()) {
        return site.fail(OMPX_ERR_MISMATCH, "dst and src have different sizes",
                         "pass sections with as many elements, of one type");
    }
    return OMPX_SUCCESS;
}

using section_call = int (*)(const char *, int, const ompx_fortran_sections *);
using device_section_call = int (*)(const char *, int, const ompx_fortran_sections *, int, int);

/// A call that moves data between two arguments that may be sections.
class transfer {
public:
    transfer(const char *function, int rank, const CFI_cdesc_t *to, const CFI_cdesc_t *from)
        : function_(function), rank_(rank), dst_(to), src_(from), site_(function, dst_, src_, rank),
          status_(check_pair(site_, dst_, src_)) {}

    [[nodiscard]] const array &dst() const { return dst_; }
    [[nodiscard]] const array &src() const { return src_; }
    [[nodiscard]] const call_site &site() const { return site_; }
    [[nodiscard]] int status() const { return status_; }
    [[nodiscard]] bool is_contiguous() const {
        return dst_.is_contiguous() && src_.is_contiguous();
    }

    /// The status, after the check that both sides are contiguous.
    [[nodiscard]] int require_contiguous() const {
        int status = status_;
        if (status == OMPX_SUCCESS) {
            status = check_contiguous(site_, dst_, "dst");
        }
        return status == OMPX_SUCCESS ? check_contiguous(site_, src_, "src") : status;
    }

    /// Runs plain() for contiguous data, otherwise `call` for sections.
    template <typename Plain>
    int run(section_call call, Plain &&plain) const {
        if (status_ != OMPX_SUCCESS) {
            return status_;
        }
        return is_contiguous() ? plain() : move_sections(call);
    }
    /// run() for calls with an event; with sections the transfer is complete on return.
    template <typename Plain>
    int start(section_call call, ompx_event_t *event, Plain &&plain) const {
        if (status_ != OMPX_SUCCESS) {
            return status_;
        }
        if (is_contiguous()) {
            return plain();
        }
        int status = move_sections(call);
        if (status == OMPX_SUCCESS && event != nullptr) {
            *event = nullptr;
            status = ompx_fence();
        }
        return status;
    }
    /// run() and start() on devices; `event` is null for calls that wait.
    template <typename Plain>
    int run_on_devices(device_section_call call, int dst_device, int src_device, bool is_nb,
                       ompx_event_t *event, Plain &&plain) const {
        if (status_ != OMPX_SUCCESS) {
            return status_;
        }
        if (is_contiguous()) {
            return plain();
        }
        int status = with_sections([&](const char *function, const ompx_fortran_sections &both) {
            return call(function, rank_, &both, dst_device, src_device);
        });
        if (status == OMPX_SUCCESS && is_nb) {
            if (event != nullptr) {
                *event = nullptr;
            }
            status = ompx_fence();
        }
        return status;
    }
    int move_sections(section_call call) const {
        return with_sections([&](const char *function, const ompx_fortran_sections &both) {
            return call(function, rank_, &both);
        });
    }
    /// Runs use(function, sections), or reports that the shapes differ.
    template <typename Use>
    int with_sections(Use &&use) const {
        shape const to(dst_);
        shape const from(src_);
        if (!is_same(to, from)) {
            return site_.fail(OMPX_ERR_MISMATCH, "dst and src are sections of different shapes",
                              "pass the same number of elements in each dimension");
        }
        ompx_fortran_sections const both{dst_.data(), src_.data(), src_.element_bytes(),
                                         to.num_dims, to.counts,   to.strides,
                                         from.strides};
        return use(function_, both);
    }

private:
    const char *function_;
    int rank_;
    array dst_;
    array src_;
    call_site site_;
    int status_;
};

/// Checks that all arguments are scalars of one supported type. The message names the first two.
int check_scalars(const char *function, int rank, std::initializer_list<array> all) {
    array const &first = *all.begin();
    for (array const &each : all) {
        if (each.count() != 1 || each.type() == 0 || each.type() != first.type()) {
            return call_site(function, first, *(all.begin() + 1), rank)
                .fail(OMPX_ERR_ARG, "the arguments are not scalars of one type",
                      "pass scalars of one type: an integer of 4 or 8 bytes, or a real");
        }
    }
    return OMPX_SUCCESS;
}

/// ompx_wait_until or ompx_test_until, for a scalar and a value of its type.
template <typename Call>
int call_until(const char *function, Call call, CFI_cdesc_t *where, int cmp, CFI_cdesc_t *wanted) {
    array const variable(where);
    array const value(wanted);
    int const status = check_scalars(function, call_site::no_rank, {variable, value});
    return status == OMPX_SUCCESS
               ? call(variable.data(), variable.type(), static_cast<ompx_cmp_t>(cmp), value.data())
               : status;
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_put(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_put", rank, to, from);
    return given.run(ompx_fortran_put, [&] {
        return ompx_put(rank, given.dst().data(), given.src().data(), given.src().nbytes());
    });
}

int diomp_fortran_get(CFI_cdesc_t *to, int rank, CFI_cdesc_t *from) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_get", rank, to, from);
    return given.run(ompx_fortran_get, [&] {
        return ompx_get(given.dst().data(), rank, given.src().data(), given.dst().nbytes());
    });
}

int diomp_fortran_put_nb(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_put_nb", rank, to, from);
    return given.start(ompx_fortran_put, event, [&] {
        return ompx_put_nb(rank, given.dst().data(), given.src().data(), given.src().nbytes(),
                           event);
    });
}

int diomp_fortran_get_nb(CFI_cdesc_t *to, int rank, CFI_cdesc_t *from, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_get_nb", rank, to, from);
    return given.start(ompx_fortran_get, event, [&] {
        return ompx_get_nb(given.dst().data(), rank, given.src().data(), given.dst().nbytes(),
                           event);
    });
}

int diomp_fortran_target_put(int rank, CFI_cdesc_t *to, int dst_device, CFI_cdesc_t *from,
                             int src_device) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_target_put", rank, to, from);
    return given.run_on_devices(
        ompx_fortran_target_put, dst_device, src_device, false, nullptr, [&] {
            return ompx_target_put(rank, given.dst().data(), dst_device, given.src().data(),
                                   src_device, given.src().nbytes());
        });
}

int diomp_fortran_target_get(CFI_cdesc_t *to, int dst_device, int rank, CFI_cdesc_t *from,
                             int src_device) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_target_get", rank, to, from);
    return given.run_on_devices(
        ompx_fortran_target_get, dst_device, src_device, false, nullptr, [&] {
            return ompx_target_get(given.dst().data(), dst_device, rank, given.src().data(),
                                   src_device, given.dst().nbytes());
        });
}

int diomp_fortran_target_put_nb(int rank, CFI_cdesc_t *to, int dst_device, CFI_cdesc_t *from,
                                int src_device, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_target_put_nb", rank, to, from);
    return given.run_on_devices(ompx_fortran_target_put, dst_device, src_device, true, event, [&] {
        return ompx_target_put_nb(rank, given.dst().data(), dst_device, given.src().data(),
                                  src_device, given.src().nbytes(), event);
    });
}

int diomp_fortran_target_get_nb(CFI_cdesc_t *to, int dst_device, int rank, CFI_cdesc_t *from,
                                int src_device, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_target_get_nb", rank, to, from);
    return given.run_on_devices(ompx_fortran_target_get, dst_device, src_device, true, event, [&] {
        return ompx_target_get_nb(given.dst().data(), dst_device, rank, given.src().data(),
                                  src_device, given.dst().nbytes(), event);
    });
}

void *diomp_fortran_target_alloc(std::size_t nbytes, int device, int kind) {
    caller const here(DIOMP_FORTRAN_CALLER);
    uintptr_t const allocators[] = {0, OMPX_SYMMETRIC_MEM_ALLOC_VALUE_,
                                    OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_, OMPX_LOCAL_MEM_ALLOC_VALUE_};
    bool const is_known = kind >= OMPX_MEM_SYMMETRIC && kind <= OMPX_MEM_LOCAL;
    return ompx_target_alloc(nbytes, device, allocators[is_known ? kind : 0]);
}

/// A contiguous target gets data and signal in one message, copied first if src is a section.
int diomp_fortran_put_signal(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from, uint64_t *signal,
                             uint64_t value, int op) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_put_signal", rank, to, from);
    auto const how = static_cast<ompx_signal_op_t>(op);
    array const &dst = given.dst();
    int status = given.status();
    if (status == OMPX_SUCCESS && dst.is_contiguous()) {
        contiguous_buffer src;
        status = src.load(given.site(), given.src());
        return status == OMPX_SUCCESS
                   ? ompx_put_signal(rank, dst.data(), src.data(), dst.nbytes(), signal, value, how)
                   : status;
    }
    return status != OMPX_SUCCESS
               ? status
               : given.with_sections([&](const char *function, const ompx_fortran_sections &both) {
                     return ompx_fortran_put_signal(function, rank, &both, signal, value, op);
                 });
}

int diomp_fortran_put_signal_nb(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from, uint64_t *signal,
                                uint64_t value, int op, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_put_signal_nb", rank, to, from);
    if (given.status() != OMPX_SUCCESS) {
        return given.status();
    }
    if (given.is_contiguous()) {
        return ompx_put_signal_nb(rank, given.dst().data(), given.src().data(),
                                  given.src().nbytes(), signal, value,
                                  static_cast<ompx_signal_op_t>(op), event);
    }
    return given.with_sections([&](const char *function, const ompx_fortran_sections &both) {
        return ompx_fortran_put_signal_nb(function, rank, &both, signal, value, op, event);
    });
}

int diomp_fortran_atomic_fetch(int rank, CFI_cdesc_t *at, CFI_cdesc_t *with, CFI_cdesc_t *old,
                               ompx_op_t op) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const operand(with);
    array const result(old);
    int const status = check_scalars("ompx_atomic_fetch", rank, {target, operand, result});
    return status == OMPX_SUCCESS ? ompx_atomic_fetch(rank, target.data(), operand.data(),
                                                      result.data(), target.type(), op)
                                  : status;
}

int diomp_fortran_compare_swap(int rank, CFI_cdesc_t *at, CFI_cdesc_t *expect, CFI_cdesc_t *wish,
                               CFI_cdesc_t *old) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const expected(expect);
    array const desired(wish);
    array const result(old);
    int const status =
        check_scalars("ompx_atomic_compare_swap", rank, {target, expected, desired, result});
    return status == OMPX_SUCCESS
               ? ompx_atomic_compare_swap(rank, target.data(), expected.data(), desired.data(),
                                          result.data(), target.type())
               : status;
}

int diomp_fortran_wait_until(CFI_cdesc_t *where, int cmp, CFI_cdesc_t *wanted) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return call_until("ompx_wait_until", ompx_wait_until, where, cmp, wanted);
}

int diomp_fortran_wait_until_fetch(CFI_cdesc_t *where, int cmp, CFI_cdesc_t *wanted,
                                   CFI_cdesc_t *found) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const variable(where);
    array const value(wanted);
    array const result(found);
    int const status =
        check_scalars("ompx_wait_until_fetch", call_site::no_rank, {variable, value, result});
    return status == OMPX_SUCCESS
               ? ompx_wait_until_fetch(variable.data(), variable.type(),
                                       static_cast<ompx_cmp_t>(cmp), value.data(), result.data())
               : status;
}

int diomp_fortran_test_until(CFI_cdesc_t *where, int cmp, CFI_cdesc_t *wanted) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return call_until("ompx_test_until", ompx_test_until, where, cmp, wanted);
}

int diomp_fortran_atomic_fetch_nb(int rank, CFI_cdesc_t *at, CFI_cdesc_t *with, CFI_cdesc_t *old,
                                  ompx_op_t op, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const operand(with);
    array const result(old);
    int const status = check_scalars("ompx_atomic_fetch_nb", rank, {target, operand, result});
    return status == OMPX_SUCCESS ? ompx_atomic_fetch_nb(rank, target.data(), operand.data(),
                                                         result.data(), target.type(), op, event)
                                  : status;
}

int diomp_fortran_compare_swap_nb(int rank, CFI_cdesc_t *at, CFI_cdesc_t *expect, CFI_cdesc_t *wish,
                                  CFI_cdesc_t *old, ompx_event_t *event) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const expected(expect);
    array const desired(wish);
    array const result(old);
    int const status =
        check_scalars("ompx_atomic_compare_swap_nb", rank, {target, expected, desired, result});
    return status == OMPX_SUCCESS
               ? ompx_atomic_compare_swap_nb(rank, target.data(), expected.data(), desired.data(),
                                             result.data(), target.type(), event)
               : status;
}

int diomp_fortran_register(CFI_cdesc_t *range) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const given(range);
    int const status = check_contiguous(call_site("ompx_register", given, given), given, "array");
    return status != OMPX_SUCCESS ? status : ompx_register(given.data(), given.nbytes());
}

int diomp_fortran_register_symmetric(CFI_cdesc_t *range) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const given(range);
    int const status =
        check_contiguous(call_site("ompx_register_symmetric", given, given), given, "array");
    return status != OMPX_SUCCESS ? status : ompx_register_symmetric(given.data(), given.nbytes());
}

int diomp_fortran_unregister_symmetric(CFI_cdesc_t *range) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_unregister_symmetric(array(range).data());
}

/// Both sides must be contiguous: a section's transfer would need the context of its runs.
int diomp_fortran_context_put_nb(ompx_context_t context, int rank, CFI_cdesc_t *to,
                                 CFI_cdesc_t *from) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_context_put_nb", rank, to, from);
    int const status = given.require_contiguous();
    return status != OMPX_SUCCESS ? status
                                  : ompx_context_put_nb(context, rank, given.dst().data(),
                                                        given.src().data(), given.src().nbytes());
}

int diomp_fortran_context_get_nb(ompx_context_t context, CFI_cdesc_t *to, int rank,
                                 CFI_cdesc_t *from) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_context_get_nb", rank, to, from);
    int const status = given.require_contiguous();
    return status != OMPX_SUCCESS ? status
                                  : ompx_context_get_nb(context, given.dst().data(), rank,
                                                        given.src().data(), given.dst().nbytes());
}

int diomp_fortran_context_put_signal_nb(ompx_context_t context, int rank, CFI_cdesc_t *to,
                                        CFI_cdesc_t *from, uint64_t *signal, uint64_t value,
                                        int op) {
    caller const here(DIOMP_FORTRAN_CALLER);
    transfer const given("ompx_context_put_signal_nb", rank, to, from);
    int const status = given.require_contiguous();
    return status != OMPX_SUCCESS
               ? status
               : ompx_context_put_signal_nb(context, rank, given.dst().data(), given.src().data(),
                                            given.src().nbytes(), signal, value,
                                            static_cast<ompx_signal_op_t>(op));
}

int diomp_fortran_context_atomic_fetch_nb(ompx_context_t context, int rank, CFI_cdesc_t *at,
                                          CFI_cdesc_t *with, CFI_cdesc_t *old, ompx_op_t op) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const operand(with);
    array const result(old);
    int const status =
        check_scalars("ompx_context_atomic_fetch_nb", rank, {target, operand, result});
    return status != OMPX_SUCCESS
               ? status
               : ompx_context_atomic_fetch_nb(context, rank, target.data(), operand.data(),
                                              result.data(), target.type(), op);
}

int diomp_fortran_context_compare_swap_nb(ompx_context_t context, int rank, CFI_cdesc_t *at,
                                          CFI_cdesc_t *expect, CFI_cdesc_t *wish,
                                          CFI_cdesc_t *old) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const target(at);
    array const expected(expect);
    array const desired(wish);
    array const result(old);
    int const status = check_scalars("ompx_context_atomic_compare_swap_nb", rank,
                                     {target, expected, desired, result});
    return status != OMPX_SUCCESS
               ? status
               : ompx_context_atomic_compare_swap_nb(context, rank, target.data(), expected.data(),
                                                     desired.data(), result.data(), target.type());
}

int diomp_fortran_unregister(CFI_cdesc_t *range) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_unregister(array(range).data());
}

int diomp_fortran_free(CFI_cdesc_t *range) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    return ompx_free(array(range).data());
}

void *diomp_fortran_remote_ptr(CFI_cdesc_t *descriptor, int rank) {
    return ompx_remote_ptr(array(descriptor).data(), rank);
}

int diomp_fortran_allocate(const int *extents, int num_dims, std::size_t element_bytes,
                           const int *kind_given, void **address) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    int const kind = kind_given == nullptr ? OMPX_MEM_SYMMETRIC : *kind_given;
    std::size_t nbytes = element_bytes;
    *address = nullptr;
    for (int i = 0; i < num_dims; ++i) {
        if (extents[i] < 0 ||
            __builtin_mul_overflow(nbytes, static_cast<std::size_t>(extents[i]), &nbytes)) {
            char text[80];
            std::snprintf(text, sizeof text, "extent %d of %d: %d, kind=%d", i + 1, num_dims,
                          extents[i], kind);
            return ompx_fortran_misuse("ompx_allocate", text, OMPX_ERR_ARG,
                                       "an extent is negative or the size overflows",
                                       "pass the number of elements in each dimension");
        }
    }
    *address = ompx_alloc(nbytes, 0, static_cast<ompx_mem_kind_t>(kind));
    return *address != nullptr ? OMPX_SUCCESS : ompx_last_error_status();
}

} // extern "C"
