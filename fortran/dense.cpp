// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dense.h"

#include <cstdlib>
#include <cstring>

namespace diomp::fortran {
namespace {

/// Calls f(address, nbytes) for each part of the section that lies in one piece, in the order of
/// the elements. `num_dims` is how many of the dimensions are left to walk through.
template <typename F>
void walk(const array &given, char *address, int num_dims, F &f) {
    if (num_dims == 0) {
        f(address, given.element_bytes());
        return;
    }
    CFI_dim_t const &dim = given.dim(num_dims - 1);
    if (num_dims == 1 && dim.sm == static_cast<CFI_index_t>(given.element_bytes())) {
        f(address, given.element_bytes() * static_cast<std::size_t>(dim.extent));
        return;
    }
    for (CFI_index_t i = 0; i < dim.extent; ++i) {
        walk(given, address + i * dim.sm, num_dims - 1, f);
    }
}

template <typename F>
void for_each_piece(const array &given, F &&f) {
    walk(given, static_cast<char *>(given.data()), given.rank(), f);
}

} // namespace

dense::~dense() { std::free(copy_); }

int dense::take(const call_site &site, const array &given) {
    data_ = given.data();
    if (given.is_contiguous()) {
        return OMPX_SUCCESS;
    }
    copy_ = std::malloc(given.nbytes());
    if (copy_ == nullptr) {
        return site.fail(OMPX_ERR_NOMEM, "no memory for a contiguous copy of a section",
                         "pass data that lies in one piece");
    }
    data_ = copy_;
    for_each_piece(given,
                   [to = static_cast<char *>(copy_)](char *piece, std::size_t nbytes) mutable {
                       std::memcpy(to, piece, nbytes);
                       to += nbytes;
                   });
    return OMPX_SUCCESS;
}

void dense::give_back(const array &given) const {
    if (copy_ == nullptr) {
        return;
    }
    for_each_piece(
        given, [from = static_cast<const char *>(copy_)](char *piece, std::size_t nbytes) mutable {
            std::memcpy(piece, from, nbytes);
            from += nbytes;
        });
}

} // namespace diomp::fortran
