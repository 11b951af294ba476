// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective allocation on devices, with the host's protocol (allocation.cpp): allocate, agree,
// free on disagreement.
#include "runtime/runtime.h"

#include <fmt/core.h>

namespace diomp::runtime {
namespace {

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

result<void *> runtime::allocate_on_device(int device, ompx_mem_kind_t kind, std::size_t nbytes) {
    bool const asymmetric = kind == OMPX_MEM_ASYMMETRIC;
    std::uint64_t const number = asymmetric ? num_asymmetric_on_devices_ + 1 : 0;
    auto taken = devices_->allocator().allocate_kind(device, kind, nbytes, number);
    if (kind != OMPX_MEM_LOCAL) {
        int const local_index = devices_->directory().device_index_of(device);
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
                DIOMP_TRY(devices_->allocator().deallocate(
                    *devices_->segments().segment_of(device).value(), taken.value()));
            }
            return agreed.take_failure();
        }
    }
    DIOMP_TRY(taken);
    num_asymmetric_on_devices_ += asymmetric ? 1 : 0;
    return static_cast<void *>(devices_->segments().segment_of(device).value()->base() +
                               taken.value());
}

status runtime::free_on_device(int device, void *ptr) {
    if (ptr == nullptr) {
        return {};
    }
    auto segment = devices_->segments().segment_of(device);
    DIOMP_TRY(segment);
    auto const found = devices_->segments().table().find_allocation_at(device, ptr);
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
        DIOMP_TRY(transfers_->fence());
        // Blocks of an asymmetric allocation have different offsets on the ranks but one number.
        auto const call_lock = groups_->world().lock_calls();
        DIOMP_TRY(groups_->world().arrive_and_wait(signature_of(
            sync::operation::target_free, device, devices_->directory().device_index_of(device),
            found->kind == OMPX_MEM_ASYMMETRIC ? found->number : found->offset)));
    }
    return devices_->allocator().deallocate(*segment.value(), found->offset);
}

} // namespace diomp::runtime
