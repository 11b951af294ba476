// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/collective.h"
#include "group/registry.h"
#include "runtime/collective_allocator.h"

#include <array>

namespace diomp::runtime {

result<collective_allocator::largest_values>
collective_allocator::exchange_bounds(const largest_values &of_rank) {
    std::array<std::uint64_t, 2> const own{of_rank.block_bytes, of_rank.extent_bytes};
    std::array<std::uint64_t, 2> all{};
    coll::request const largest{.what = sync::operation::allreduce,
                                .amount = all.size(),
                                .type = OMPX_UINT64,
                                .op = OMPX_MAX};
    coll::endpoint_buffers const buffers{all.data(), own.data(), nullptr};
    DIOMP_TRY(collectives_.run_locked(groups_.world(), largest, {&buffers, 1}));
    return largest_values{all[0], all[1]};
}

} // namespace diomp::runtime
