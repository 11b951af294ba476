// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "block_sizes.h"

namespace diomp::fortran {
namespace {

bool holds_integers(const array &given, std::size_t num) {
    bool const is_integer = given.type() == OMPX_INT32 || given.type() == OMPX_INT64;
    return given.data() != nullptr && is_integer && given.rank() == 1 && given.has_end() &&
           given.count() == num;
}

} // namespace

bool block_sizes::convert(const array &from, std::size_t element_bytes, std::size_t *to) {
    const auto *at = static_cast<const char *>(from.data());
    for (std::size_t i = 0; i < from.count(); ++i, at += from.dim(0).sm) {
        std::int64_t const value = from.type() == OMPX_INT32
                                       ? *reinterpret_cast<const std::int32_t *>(at)
                                       : *reinterpret_cast<const std::int64_t *>(at);
        if (value < 0 ||
            __builtin_mul_overflow(static_cast<std::size_t>(value), element_bytes, &to[i])) {
            return false;
        }
    }
    return true;
}

void block_sizes::load(operands &call, const CFI_cdesc_t *counts, const CFI_cdesc_t *displs,
                       std::size_t element_bytes, int members) {
    constexpr auto remedy = "pass an integer for each member of the group, in elements";
    call.require(members > 0, members, "the group is not valid", "pass a group of this rank");
    if (!call.is_valid()) {
        return;
    }
    auto const num = static_cast<std::size_t>(members);
    array const given_counts(counts);
    call.require(holds_integers(given_counts, num), OMPX_ERR_ARG,
                 "counts is not a vector of an integer per member", remedy);
    call.require(displs == nullptr || holds_integers(array(displs), num), OMPX_ERR_ARG,
                 "displs is not a vector of an integer per member", remedy);
    if (!call.is_valid()) {
        return;
    }
    nbytes_ = static_cast<std::size_t *>(std::calloc(2 * num, sizeof(std::size_t)));
    call.require(nbytes_ != nullptr, OMPX_ERR_NOMEM, "no memory for the sizes of the blocks",
                 "free memory");
    if (!call.is_valid()) {
        return;
    }
    bool is_possible = convert(given_counts, element_bytes, nbytes_);
    if (displs != nullptr) {
        offsets_ = nbytes_ + num;
        is_possible = convert(array(displs), element_bytes, offsets_) && is_possible;
    }
    for (std::size_t i = 0; i < num && is_possible; ++i) {
        std::size_t end = 0;
        is_possible =
            !__builtin_add_overflow(offsets_ == nullptr ? end_ : offsets_[i], nbytes_[i], &end);
        end_ = end > end_ ? end : end_;
    }
    call.require(is_possible, OMPX_ERR_ARG, "counts or displs has a negative or too large value",
                 remedy);
}

} // namespace diomp::fortran
