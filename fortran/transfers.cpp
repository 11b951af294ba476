// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put, get and what goes with them. Data in one piece on both sides is a plain transfer; sections
// of one shape are boxes.
#include "api/fortran.h"
#include "array.h"

#include <cstdio>
#include <initializer_list>

namespace diomp::fortran {
namespace {

constexpr int most_dims = CFI_MAX_RANK + 1;

/// Two sections of one shape, slowest dimension first, as ompx_put_rect() has them.
struct boxes {
    int num_dims = 0;
    std::size_t volume[most_dims];
    std::size_t dst_dimensions[most_dims];
    std::size_t src_dimensions[most_dims];
    std::size_t offsets[most_dims] = {}; // pointers are to the first elements
};

/// The dimensions that are more than one element wide.
struct shape {
    int num_dims = 0;
    CFI_dim_t dim[CFI_MAX_RANK];

    explicit shape(const array &of) {
        for (int i = 0; i < of.rank(); ++i) {
            if (of.dim(i).extent != 1) {
                dim[num_dims++] = of.dim(i);
            }
        }
    }
};

bool is_same(const shape &a, const shape &b) {
    bool same = a.num_dims == b.num_dims;
    for (int i = 0; same && i < a.num_dims; ++i) {
        same = a.dim[i].extent == b.dim[i].extent;
    }
    return same;
}

/// Of an array in which the section is a box: how many elements (of a stride: groups of them) each
/// dimension of it has. False: strides that do not divide each other, or go backwards.
bool find_dimensions(const shape &section, std::size_t element_bytes, std::size_t *dimensions) {
    auto unit = static_cast<CFI_index_t>(element_bytes);
    int const last = section.num_dims; // the fastest one: elements within a stride
    for (int i = 0; i < section.num_dims; ++i) {
        CFI_index_t const stride = section.dim[i].sm;
        if (stride < unit || stride % unit != 0) {
            return false;
        }
        dimensions[last - i] = static_cast<std::size_t>(stride / unit);
        unit = stride;
    }
    dimensions[0] = section.num_dims > 0
                        ? static_cast<std::size_t>(section.dim[section.num_dims - 1].extent)
                        : 1;
    return true;
}

int make_boxes(const call_site &site, const array &dst, const array &src, boxes &made) {
    shape const to(dst);
    shape const from(src);
    if (!is_same(to, from)) {
        return site.fail(OMPX_ERR_MISMATCH, "dst and src are sections of different shapes",
                         "pass the same number of elements in each dimension");
    }
    made.num_dims = to.num_dims + 1;
    made.volume[to.num_dims] = 1;
    for (int i = 0; i < to.num_dims; ++i) {
        made.volume[to.num_dims - 1 - i] = static_cast<std::size_t>(to.dim[i].extent);
    }
    if (!find_dimensions(to, dst.element_bytes(), made.dst_dimensions) ||
        !find_dimensions(from, src.element_bytes(), made.src_dimensions)) {
        return site.fail(OMPX_ERR_UNSUPPORTED,
                         "a section that is no box: it goes backwards, or its strides do not "
                         "divide each other",
                         "copy it into an array of its own");
    }
    return OMPX_SUCCESS;
}

int check_pair(const call_site &site, const array &dst, const array &src) {
    if (int const status = check_end(site, dst, "dst"); status != OMPX_SUCCESS) {
        return status;
    }
    if (int const status = check_end(site, src, "src"); status != OMPX_SUCCESS) {
        return status;
    }
    if (dst.nbytes() != src.nbytes()) {
        return site.fail(OMPX_ERR_MISMATCH, "dst and src have different sizes",
                         "pass sections with as many elements, of one type");
    }
    return OMPX_SUCCESS;
}

/// plain() for data in one piece, by_boxes(boxes) for sections.
template <typename Plain, typename ByBoxes>
int transfer(const call_site &site, const array &dst, const array &src, Plain &&plain,
             ByBoxes &&by_boxes) {
    if (int const status = check_pair(site, dst, src); status != OMPX_SUCCESS) {
        return status;
    }
    if (dst.is_contiguous() && src.is_contiguous()) {
        return plain();
    }
    boxes both;
    int const status = make_boxes(site, dst, src, both);
    return status == OMPX_SUCCESS ? by_boxes(both) : status;
}

/// call(dst, src) for data that must lie in one piece.
template <typename Call>
int in_one_piece(const char *function, int rank, const CFI_cdesc_t *to, const CFI_cdesc_t *from,
                 Call &&call) {
    array const dst(to);
    array const src(from);
    call_site const site(function, dst, src, rank);
    int status = check_pair(site, dst, src);
    if (status == OMPX_SUCCESS) {
        status = check_contiguous(site, dst, "dst");
    }
    if (status == OMPX_SUCCESS) {
        status = check_contiguous(site, src, "src");
    }
    return status == OMPX_SUCCESS ? call(dst, src) : status;
}

/// For calls that take a type: scalars of one type that they know. The first two are told of.
int check_scalars(const char *function, int rank, std::initializer_list<array> all) {
    array const &first = *all.begin();
    for (array const &each : all) {
        if (each.count() != 1 || each.type() == 0 || each.type() != first.type()) {
            return call_site(function, first, *(all.begin() + 1), rank)
                .fail(OMPX_ERR_ARG, "arguments that are no scalars of one type",
                      "pass scalars of one type: an integer of 4 or 8 bytes, or a real");
        }
    }
    return OMPX_SUCCESS;
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_put(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from) {
    array const dst(to);
    array const src(from);
    return transfer(
        call_site("ompx_put", dst, src, rank), dst, src,
        [&] { return ompx_put(rank, dst.data(), src.data(), src.nbytes()); },
        [&](const boxes &both) {
            return ompx_put_rect(rank, dst.data(), src.data(), src.element_bytes(), both.num_dims,
                                 both.volume, both.offsets, both.offsets, both.dst_dimensions,
                                 both.src_dimensions);
        });
}

int diomp_fortran_get(CFI_cdesc_t *to, int rank, CFI_cdesc_t *from) {
    array const dst(to);
    array const src(from);
    return transfer(
        call_site("ompx_get", dst, src, rank), dst, src,
        [&] { return ompx_get(dst.data(), rank, src.data(), dst.nbytes()); },
        [&](const boxes &both) {
            return ompx_get_rect(dst.data(), rank, src.data(), src.element_bytes(), both.num_dims,
                                 both.volume, both.offsets, both.offsets, both.dst_dimensions,
                                 both.src_dimensions);
        });
}

int diomp_fortran_put_nb(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_event_t *event) {
    return in_one_piece("ompx_put_nb", rank, to, from, [&](const array &dst, const array &src) {
        return ompx_put_nb(rank, dst.data(), src.data(), src.nbytes(), event);
    });
}

int diomp_fortran_get_nb(CFI_cdesc_t *to, int rank, CFI_cdesc_t *from, ompx_event_t *event) {
    return in_one_piece("ompx_get_nb", rank, to, from, [&](const array &dst, const array &src) {
        return ompx_get_nb(dst.data(), rank, src.data(), dst.nbytes(), event);
    });
}

int diomp_fortran_put_signal(int rank, CFI_cdesc_t *to, CFI_cdesc_t *from, uint64_t *signal,
                             uint64_t value, int op) {
    return in_one_piece("ompx_put_signal", rank, to, from, [&](const array &dst, const array &src) {
        return ompx_put_signal(rank, dst.data(), src.data(), src.nbytes(), signal, value,
                               static_cast<ompx_signal_op_t>(op));
    });
}

int diomp_fortran_atomic_fetch(int rank, CFI_cdesc_t *at, CFI_cdesc_t *with, CFI_cdesc_t *old,
                               ompx_op_t op) {
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
    array const variable(where);
    array const value(wanted);
    int const status = check_scalars("ompx_wait_until", call_site::no_rank, {variable, value});
    return status == OMPX_SUCCESS ? ompx_wait_until(variable.data(), variable.type(),
                                                    static_cast<ompx_cmp_t>(cmp), value.data())
                                  : status;
}

int diomp_fortran_register(CFI_cdesc_t *range) {
    array const given(range);
    int const status = check_contiguous(call_site("ompx_register", given, given), given, "array");
    return status != OMPX_SUCCESS ? status : ompx_register(given.data(), given.nbytes());
}

int diomp_fortran_unregister(CFI_cdesc_t *range) { return ompx_unregister(array(range).data()); }

int diomp_fortran_free(CFI_cdesc_t *range) { return ompx_free(array(range).data()); }

void *diomp_fortran_remote_ptr(CFI_cdesc_t *place, int rank) {
    return ompx_remote_ptr(array(place).data(), rank);
}

int diomp_fortran_allocate(const int *extents, int num_dims, std::size_t element_bytes, int kind,
                           void **address) {
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
    return *address != nullptr ? OMPX_SUCCESS : OMPX_ERR_NOMEM;
}

} // extern "C"
