// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/collective_allocator.h"

#include "base/sizes.h"
#include "group/group.h"
#include "group/registry.h"
#include "memory/memory.h"
#include "offload/device_allocator.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/offload.h"
#include "offload/plans.h"
#include "rma/rma.h"
#include "sync/call_signature.h"
#include "transport/arena.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace diomp::runtime {
namespace {

constexpr std::size_t default_alignment = memory::heap::granule_bytes;

sync::call_signature signature_of(ompx_mem_kind_t kind, std::size_t nbytes, std::size_t alignment) {
    sync::call_signature call;
    call.what = kind == OMPX_MEM_SYMMETRIC ? sync::operation::alloc_symmetric
                                           : sync::operation::alloc_asymmetric;
    call.type = static_cast<std::uint32_t>(std::countr_zero(alignment)) << 24;
    call.amount = kind == OMPX_MEM_SYMMETRIC ? nbytes : 0;
    return call;
}

/// `local_index`: index of the device among those that the rank drives; -1 for other devices.
sync::call_signature signature_of(sync::operation what, int device, int local_index,
                                  std::uint64_t amount) {
    sync::call_signature call;
    call.what = what;
    call.type = static_cast<std::uint32_t>(device) << 24;
    call.reduction = static_cast<std::uint8_t>(local_index + 1);
    call.amount = amount;
    return call;
}

} // namespace

result<std::uint64_t> collective_allocator::allocate_in_segment(ompx_mem_kind_t kind,
                                                                std::size_t nbytes,
                                                                std::size_t alignment) {
    switch (kind) {
    case OMPX_MEM_SYMMETRIC:
        return segment_.allocate_symmetric(nbytes, alignment);
    case OMPX_MEM_ASYMMETRIC:
        return segment_.allocate_asymmetric(nbytes, alignment);
    case OMPX_MEM_LOCAL:
        return segment_.allocate_local(nbytes, alignment);
    default:
        return error(OMPX_ERR_ARG,
                     fmt::format("{} is not a kind of allocation", static_cast<int>(kind)),
                     "use OMPX_MEM_SYMMETRIC, OMPX_MEM_ASYMMETRIC or OMPX_MEM_LOCAL");
    }
}

result<void *> collective_allocator::allocate(ompx_mem_kind_t kind, std::size_t nbytes,
                                              std::size_t alignment, contents initial) {
    if ((alignment & (alignment - 1)) != 0 || alignment > transport::arena::max_alignment) {
        return error(OMPX_ERR_ARG,
                     fmt::format("an alignment of {} bytes is not possible", alignment),
                     fmt::format("use a power of two up to {}",
                                 format_size(transport::arena::max_alignment)));
    }
    alignment = std::max(alignment, default_alignment);
    if (kind != OMPX_MEM_SYMMETRIC && kind != OMPX_MEM_ASYMMETRIC) {
        auto taken = allocate_in_segment(kind, nbytes, alignment);
        DIOMP_TRY(taken);
        if (initial == contents::zero) {
            std::memset(segment_.base() + taken.value(), 0, nbytes);
        }
        return static_cast<void *>(segment_.base() + taken.value());
    }
    auto const call_lock = groups_.world().lock_calls();
    return allocate_together(kind, nbytes, alignment, initial);
}

result<void *> collective_allocator::allocate_together(ompx_mem_kind_t kind, std::size_t nbytes,
                                                       std::size_t alignment, contents initial) {
    return allocate_as(signature_of(kind, nbytes, alignment), kind, nbytes, alignment, initial);
}

result<void *> collective_allocator::allocate_as(const sync::call_signature &call,
                                                 ompx_mem_kind_t kind, std::size_t nbytes,
                                                 std::size_t alignment, contents initial) {
    group::several_rounds const rounds(groups_.world());
    if (kind == OMPX_MEM_ASYMMETRIC && segment_.needs_alike_blocks()) {
        auto taken = allocate_alike(call, nbytes, alignment, initial);
        DIOMP_TRY(taken);
        return static_cast<void *>(segment_.base() + taken.value());
    }
    auto taken = allocate_in_segment(kind, nbytes, alignment);
    // Before the round: another rank may write as soon as its call returns.
    if (taken && initial == contents::zero) {
        std::memset(segment_.base() + taken.value(), 0, nbytes);
    }
    sync::call_signature made = call;
    if (taken && call.names_offset()) { // an allocation may have failed on some ranks only
        made.type |= sync::call_signature::hash_offset(common_offset(taken.value()));
    }
    if (status agreed =
            agree_on_allocation(made, nbytes, taken, "set DIOMP_SEGMENT_SIZE to a larger value");
        !agreed) {
        if (taken) {
            segment_.release(taken.value());
        }
        return agreed.take_failure();
    }
    DIOMP_TRY(taken);
    return static_cast<void *>(segment_.base() + taken.value());
}

// The first round compares the calls, the second one finds the largest block, and the last one
// shows whether all ranks had space. A rank has none if a thread of it has allocated local memory
// between the last two; then all try again.
result<std::uint64_t> collective_allocator::allocate_alike(const sync::call_signature &call,
                                                           std::size_t nbytes,
                                                           std::size_t alignment,
                                                           contents initial) {
    constexpr int max_attempts = 16;
    constexpr std::uint64_t retry = std::numeric_limits<std::uint64_t>::max();
    group::group &world = groups_.world();
    auto compared = world.agree(call, std::nullopt);
    DIOMP_TRY(compared);
    for (int attempt = 1;; ++attempt) {
        auto of_all = exchange_bounds({nbytes, segment_.private_extent()});
        DIOMP_TRY(of_all);
        auto taken = segment_.allocate_alike(
            nbytes, alignment, {of_all.value().block_bytes, of_all.value().extent_bytes});
        // Before the round: another rank may write as soon as its call returns.
        if (taken && initial == contents::zero) {
            std::memset(segment_.base() + taken.value(), 0, nbytes);
        }
        bool const has_raced = !taken && taken.failure().code() == OMPX_ERR_STATE;
        auto agreed = world.agree(call, taken       ? std::nullopt
                                        : has_raced ? std::optional(retry)
                                                    : std::optional<std::uint64_t>(nbytes));
        DIOMP_TRY(agreed);
        auto const &veto = agreed.value();
        if (!veto) {
            return taken;
        }
        if (taken) {
            segment_.release(taken.value());
        }
        if (veto->detail == retry && attempt < max_attempts) {
            continue;
        }
        if (!taken && !has_raced) {
            return taken;
        }
        return error(OMPX_ERR_NOMEM,
                     fmt::format("rank {} has no space for blocks of up to {} bytes", veto->member,
                                 of_all.value().block_bytes),
                     "set DIOMP_SEGMENT_SIZE to a larger value");
    }
}

status collective_allocator::agree_on_allocation(const sync::call_signature &call,
                                                 std::size_t nbytes,
                                                 const result<std::uint64_t> &taken,
                                                 const char *remedy) {
    auto agreed =
        groups_.world().agree(call, taken ? std::nullopt : std::optional<std::uint64_t>(nbytes));
    DIOMP_TRY(agreed);
    auto const &veto = agreed.value();
    if (taken && veto) { // the rank without space returns its own error
        return error(OMPX_ERR_NOMEM,
                     fmt::format("rank {} has no space for its block ({} bytes)", veto->member,
                                 veto->detail),
                     remedy);
    }
    return {};
}

result<memory::allocation> collective_allocator::find_start(const void *ptr) const {
    auto const offset = space_.own_offset(ptr);
    auto const found = offset ? segment_.find(*offset) : std::nullopt;
    if (!found || found->offset != *offset) {
        return error(
            OMPX_ERR_ADDRESS,
            found    ? fmt::format("the address is {} bytes inside an allocation, not at its start",
                                   *offset - found->offset)
            : offset ? "no allocation starts there: it was freed before, or never made"
                     : "the address is not in this rank's segment",
            "free each allocation once, with the address that the allocation returned, on its "
            "owner");
    }
    return *found;
}

status collective_allocator::free(void *ptr) {
    if (ptr == nullptr) {
        return {};
    }
    auto found = find_start(ptr);
    DIOMP_TRY(found);
    auto const &allocation = found.value();
    if (allocation.kind == OMPX_MEM_LOCAL) {
        segment_.release(allocation.offset);
        return {};
    }
    DIOMP_TRY(transfers_.fence());
    auto const call_lock = groups_.world().lock_calls();
    return release_on_all(allocation.offset, common_offset(allocation.offset));
}

// Blocks of an asymmetric allocation have different offsets on the ranks; their second-level
// pointers have the same offset.
std::uint64_t collective_allocator::common_offset(std::uint64_t offset) const {
    return segment_.pointer_of(offset).value_or(offset);
}

status collective_allocator::release_on_all(std::uint64_t offset, std::uint64_t name) {
    group::several_rounds const rounds(groups_.world());
    sync::call_signature call;
    call.what = sync::operation::free_memory;
    call.amount = name;
    DIOMP_TRY(groups_.world().arrive_and_wait(call));
    segment_.release(offset);
    return {};
}

result<void *> collective_allocator::reallocate(void *ptr, std::size_t nbytes) {
    auto found = find_start(ptr);
    DIOMP_TRY(found);
    auto const &old = found.value();
    ompx_mem_kind_t const kind = old.kind;
    if (kind == OMPX_MEM_LOCAL) {
        if (nbytes == 0) {
            segment_.release(old.offset);
            return static_cast<void *>(nullptr);
        }
        auto fresh = allocate(kind, nbytes, default_alignment);
        DIOMP_TRY(fresh);
        std::memcpy(fresh.value(), ptr, std::min(nbytes, old.nbytes));
        segment_.release(old.offset);
        return fresh;
    }
    DIOMP_TRY(transfers_.fence()); // no put may be in flight in the rounds that follow
    group::group &world = groups_.world();
    auto const call_lock = world.lock_calls();
    group::several_rounds const rounds(world);
    // Ranks whose block is another one, or that allocate or free alone, have made another call.
    sync::call_signature call;
    call.what = sync::operation::reallocate;
    call.amount = kind == OMPX_MEM_SYMMETRIC ? nbytes : 0;
    call.type = static_cast<std::uint32_t>(common_offset(old.offset) / memory::heap::granule_bytes);
    bool is_empty = nbytes == 0;
    if (kind == OMPX_MEM_ASYMMETRIC) { // a block of 0 bytes remains unless all ranks want none
        auto agreed = world.agree(call, is_empty ? std::nullopt : std::optional(nbytes));
        DIOMP_TRY(agreed);
        is_empty = !agreed.value();
    }
    if (is_empty) {
        DIOMP_TRY(release_on_all(old.offset, common_offset(old.offset)));
        return static_cast<void *>(nullptr);
    }
    auto fresh = allocate_as(call, kind, nbytes, default_alignment, contents::undefined);
    DIOMP_TRY(fresh);
    std::memcpy(fresh.value(), ptr, std::min(nbytes, old.nbytes));
    // All ranks have copied, and their new blocks have one offset.
    std::uint64_t const moved_to = *space_.own_offset(fresh.value());
    std::uint64_t const name =
        common_offset(old.offset) ^
        std::uint64_t{sync::call_signature::hash_offset(common_offset(moved_to))} << 40;
    if (status freed = release_on_all(old.offset, name); !freed) {
        segment_.release(moved_to); // on all ranks
        return freed.take_failure();
    }
    return fresh;
}

result<void *> collective_allocator::allocate_on_device(int device, ompx_mem_kind_t kind,
                                                        std::size_t nbytes) {
    bool const asymmetric = kind == OMPX_MEM_ASYMMETRIC;
    std::uint64_t const number = asymmetric ? num_asymmetric_on_devices_ + 1 : 0;
    auto taken = devices_.allocator().allocate_kind(device, kind, nbytes, number);
    if (kind != OMPX_MEM_LOCAL) {
        auto const call_lock = groups_.world().lock_calls();
        group::several_rounds const rounds(groups_.world());
        int const local_index = devices_.device_index_of(device);
        auto call = asymmetric ? signature_of(sync::operation::target_alloc_asymmetric, device,
                                              local_index, 0)
                               : signature_of(sync::operation::target_alloc_symmetric, device,
                                              local_index, nbytes);
        if (taken &&
            !asymmetric) { // devices with different numbers may differ in their call history
            call.type |= sync::call_signature::hash_offset(taken.value());
        }
        if (status agreed = agree_on_allocation(call, nbytes, taken,
                                                "set DIOMP_DEVICE_SEGMENT_SIZE to a larger value");
            !agreed) {
            if (taken) {
                DIOMP_TRY(devices_.allocator().deallocate(
                    *devices_.segments().segment_of(device).value(), taken.value()));
            }
            return agreed.take_failure();
        }
    }
    DIOMP_TRY(taken);
    num_asymmetric_on_devices_ += asymmetric ? 1 : 0;
    return static_cast<void *>(devices_.segments().segment_of(device).value()->base() +
                               taken.value());
}

status collective_allocator::free_on_device(int device, void *ptr) {
    if (ptr == nullptr) {
        return {};
    }
    auto segment = devices_.segments().segment_of(device);
    DIOMP_TRY(segment);
    auto const found = devices_.segments().table().find_allocation_at(device, ptr);
    if (!found) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of device {} starts there: it was freed before, or "
                                 "never made",
                                 device),
                     "free each allocation once, with the address that the allocation returned");
    }
    if (found->by_openmp) {
        return error(OMPX_ERR_ADDRESS,
                     found->host != nullptr
                         ? "the memory is mapped: OpenMP frees it when it is unmapped"
                         : "the memory is OpenMP's own",
                     "end the mapping (target exit data), or call omp_target_free");
    }
    if (found->kind != OMPX_MEM_LOCAL) {
        DIOMP_TRY(transfers_.fence());
        // Blocks of an asymmetric allocation have different offsets on the ranks but one number.
        auto const call_lock = groups_.world().lock_calls();
        group::several_rounds const rounds(groups_.world());
        DIOMP_TRY(groups_.world().arrive_and_wait(
            signature_of(sync::operation::target_free, device, devices_.device_index_of(device),
                         found->kind == OMPX_MEM_ASYMMETRIC ? found->number : found->offset)));
    }
    devices_.plans().forget_memory(device, ptr, found->nbytes);
    return devices_.allocator().deallocate(*segment.value(), found->offset);
}

} // namespace diomp::runtime
