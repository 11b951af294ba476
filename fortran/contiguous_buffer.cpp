// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contiguous_buffer.h"

#include <cstdlib>
#include <cstring>

namespace diomp::fortran {
namespace {

/// Calls f(address, nbytes) for each contiguous run of the section, in element order. `num_dims` is
/// the number of dimensions left to iterate over.
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
void for_each_run(const array &given, F &&f) {
    walk(given, static_cast<char *>(given.data()), given.rank(), f);
}

} // namespace

contiguous_buffer::~contiguous_buffer() { std::free(copy_); }

int contiguous_buffer::load(const call_site &site, const array &given) {
    data_ = given.data();
    if (given.is_contiguous()) {
        return OMPX_SUCCESS;
    }
    copy_ = std::malloc(given.nbytes());
    if (copy_ == nullptr) {
        return site.fail(OMPX_ERR_NOMEM, "no memory for a contiguous copy of a section",
                         "pass contiguous data");
    }
    data_ = copy_;
    for_each_run(given,
                 [to = static_cast<char *>(copy_)](char *run_begin, std::size_t nbytes) mutable {
                     std::memcpy(to, run_begin, nbytes);
                     to += nbytes;
                 });
    return OMPX_SUCCESS;
}

void contiguous_buffer::store_back(const array &given) const {
    if (copy_ == nullptr) {
        return;
    }
    for_each_run(given, [from = static_cast<const char *>(copy_)](char *run_begin,
                                                                  std::size_t nbytes) mutable {
        std::memcpy(run_begin, from, nbytes);
        from += nbytes;
    });
}

} // namespace diomp::fortran
