// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of the _rect calls, on host and device memory.
#pragma once

#include "api/internal/state.h"
#include "rma/box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace diomp::api {

/// The C functions' arguments, by remote and local side instead of dst and src. In elements.
struct rect_arguments {
    std::size_t element_size;
    int num_dims;
    const std::size_t *volume;
    const std::size_t *remote_offsets;
    const std::size_t *local_offsets;
    const std::size_t *remote_dimensions;
    const std::size_t *local_dimensions;
};

inline result<rma::box> make_box(const rect_arguments &given) {
    if (given.num_dims < 1 || given.num_dims > 32) {
        return error(OMPX_ERR_ARG, fmt::format("{} dimensions", given.num_dims),
                     "pass 1 to 32 dimensions");
    }
    for (const void *list : {given.volume, given.remote_offsets, given.local_offsets,
                             given.remote_dimensions, given.local_dimensions}) {
        DIOMP_TRY(check_pointer(list, "one of volume, offsets, dimensions"));
    }
    auto const n = static_cast<std::size_t>(given.num_dims);
    return rma::box{given.element_size,           {given.volume, n},
                    {given.remote_offsets, n},    {given.local_offsets, n},
                    {given.remote_dimensions, n}, {given.local_dimensions, n}};
}

inline std::size_t box_bytes(const rma::box &shape) {
    std::size_t nbytes = shape.element_size;
    for (std::size_t const extent : shape.volume) {
        nbytes *= extent;
    }
    return nbytes;
}

/// Checks the arguments as check_transfer() does. A box without elements needs no addresses.
inline status check_box_transfer(runtime::runtime &running, int rank, const void *dst,
                                 const void *src, const rma::box &shape) {
    bool const is_empty =
        shape.element_size == 0 || std::ranges::find(shape.volume, 0U) != shape.volume.end();
    return check_transfer(running, rank, dst, src, is_empty ? 0 : 1);
}

} // namespace diomp::api
