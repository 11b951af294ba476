// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "array.h"

#include "diomp/binding.hpp"

#include <cstdio>

namespace diomp::fortran {

int call_site::fail(int status, const char *what, const char *remedy) const {
    char text[240];
    char rank[32] = "";
    if (rank_ != no_rank) {
        std::snprintf(rank, sizeof rank, "rank=%d, ", rank_);
    }
    auto const elements = [](const array &given) {
        return given.data() != nullptr && given.has_end() ? given.count() : 0;
    };
    std::snprintf(text, sizeof text, "%sdst=%p (%zu x %zu bytes), src=%p (%zu x %zu bytes)", rank,
                  dst_.data(), elements(dst_), dst_.element_bytes(), src_.data(), elements(src_),
                  src_.element_bytes());
    return ompx_fortran_misuse(function_, text, status, what, remedy);
}

bool array::has_end() const { return rank() == 0 || dim(rank() - 1).extent != -1; }

bool array::is_contiguous() const {
    auto wanted = static_cast<CFI_index_t>(element_bytes());
    for (int i = 0; i < rank(); ++i) {
        if (dim(i).extent > 1 && dim(i).sm != wanted) {
            return count() == 0;
        }
        wanted *= dim(i).extent;
    }
    return true;
}

std::size_t array::count() const {
    std::size_t elements = 1;
    for (int i = 0; i < rank(); ++i) {
        elements *= static_cast<std::size_t>(dim(i).extent);
    }
    return elements;
}

namespace {

struct type_pair {
    CFI_type_t fortran_type;
    ompx_type_t ompx_type;
};

// Aliases, such as int and int32_t, may be listed twice.
constexpr type_pair type_pairs[] = {
    {CFI_type_int8_t, OMPX_INT8},
    {CFI_type_int16_t, OMPX_INT16},
    {CFI_type_int32_t, OMPX_INT32},
    {CFI_type_int64_t, OMPX_INT64},
    {CFI_type_int, OMPX_INT32},
    {CFI_type_long, OMPX_INT64},
    {CFI_type_long_long, OMPX_INT64},
    // flang's logicals of 2, 4 and 8 bytes:
    {CFI_type_int_least16_t, OMPX_INT16},
    {CFI_type_int_least32_t, OMPX_INT32},
    {CFI_type_int_least64_t, OMPX_INT64},
    {CFI_type_float, OMPX_FLOAT},
    {CFI_type_double, OMPX_DOUBLE},
    {CFI_type_long_double, OMPX_LONG_DOUBLE},
    {CFI_type_float_Complex, OMPX_FLOAT_COMPLEX},
    {CFI_type_double_Complex, OMPX_DOUBLE_COMPLEX},
};

/// Logicals as integers: OMPX_LAND and OMPX_LOR distinguish zero and non-zero.
ompx_type_t integer_of(std::size_t nbytes) {
    switch (nbytes) {
    case 1:
        return OMPX_INT8;
    case 2:
        return OMPX_INT16;
    case 4:
        return OMPX_INT32;
    case 8:
        return OMPX_INT64;
    default:
        return 0;
    }
}

} // namespace

ompx_type_t array::type() const {
    for (type_pair const &each : type_pairs) {
        if (each.fortran_type == descriptor_->type) {
            return each.ompx_type;
        }
    }
    // The standard's CFI_type_Bool has one size; gfortran has logicals of several sizes.
#if defined(CFI_type_Logical)
    bool const is_logical = (descriptor_->type & CFI_type_mask) == CFI_type_Logical;
#else
    bool const is_logical = descriptor_->type == CFI_type_Bool;
#endif
    if (is_logical) {
        return integer_of(element_bytes());
    }
    return 0;
}

int check_end(const call_site &site, const array &given, const char *name) {
    char what[96];
    if (given.data() == nullptr) {
        std::snprintf(what, sizeof what, "%s is a pointer without a target, or not allocated",
                      name);
        return site.fail(OMPX_ERR_ARG, what,
                         "associate it first, an address by c_f_pointer(address, pointer, shape)");
    }
    if (given.has_end()) {
        return OMPX_SUCCESS;
    }
    std::snprintf(what, sizeof what, "%s is an assumed-size array, whose end is not known", name);
    return site.fail(OMPX_ERR_ARG, what, "pass a section with an upper bound, such as a(1:n)");
}

int check_types(const call_site &site, const array &dst, const array &src) {
    auto const holds_any = [](const array &of) {
        return of.type() == 0 || of.element_bytes() == 1;
    };
    if (holds_any(dst) || holds_any(src) || dst.type() == src.type()) {
        return OMPX_SUCCESS;
    }
    return site.fail(OMPX_ERR_ARG, "dst and src do not have one type",
                     "convert one of them; arrays of integer(1) may hold any data");
}

int check_contiguous(const call_site &site, const array &given, const char *name) {
    if (int const status = check_end(site, given, name); status != OMPX_SUCCESS) {
        return status;
    }
    if (given.is_contiguous()) {
        return OMPX_SUCCESS;
    }
    char what[96];
    std::snprintf(what, sizeof what, "%s is a section with gaps", name);
    return site.fail(OMPX_ERR_UNSUPPORTED, what, "copy it into an array of its own");
}

} // namespace diomp::fortran
