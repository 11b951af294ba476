// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective allocation on devices, as that on hosts: take, then agree, else give back.
#include "runtime/runtime.h"

#include <fmt/core.h>

namespace diomp::runtime {
namespace {

/// `place`: of the device among those that the rank drives; -1: it is none of them.
sync::call_signature signature_of(sync::operation what, int device, int place,
                                  std::uint64_t amount) {
    sync::call_signature call;
    call.what = what;
    call.type = static_cast<std::uint32_t>(device) << 24;
    call.reduction = static_cast<std::uint8_t>(place + 1);
    call.amount = amount;
    return call;
}

} // namespace

result<void *> runtime::allocate_on_device(int device, ompx_mem_kind_t kind, std::size_t nbytes) {
    bool const asymmetric = kind == OMPX_MEM_ASYMMETRIC;
    std::uint64_t const number = asymmetric ? num_asymmetric_on_devices_ + 1 : 0;
    auto taken = devices_->take(device, kind, nbytes, number);
    if (kind != OMPX_MEM_LOCAL) {
        int const place = devices_->place_of(device);
        auto call =
            asymmetric
                ? signature_of(sync::operation::target_alloc_asymmetric, device, place, 0)
                : signature_of(sync::operation::target_alloc_symmetric, device, place, nbytes);
        if (taken && !asymmetric) { // devices with different numbers may have different pasts
            call.type |= sync::call_signature::fold(taken.value());
        }
        if (status agreed = agree_on_allocation(call, nbytes, taken,
                                                "set DIOMP_DEVICE_SEGMENT_SIZE to a larger value");
            !agreed) {
            if (taken) {
                DIOMP_TRY(
                    devices_->give_back(*devices_->segment_of(device).value(), taken.value()));
            }
            return agreed.take_failure();
        }
    }
    DIOMP_TRY(taken);
    num_asymmetric_on_devices_ += asymmetric ? 1 : 0;
    return static_cast<void *>(devices_->segment_of(device).value()->base() + taken.value());
}

status runtime::free_on_device(int device, void *ptr) {
    if (ptr == nullptr) {
        return {};
    }
    auto segment = devices_->segment_of(device);
    DIOMP_TRY(segment);
    auto const found = devices_->find_start(device, ptr);
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
        // Own parts of asymmetric memory lie anywhere, their numbers are the same.
        auto const turn = groups_->world().enter();
        DIOMP_TRY(groups_->world().meet(
            signature_of(sync::operation::target_free, device, devices_->place_of(device),
                         found->kind == OMPX_MEM_ASYMMETRIC ? found->number : found->offset)));
    }
    return devices_->give_back(*segment.value(), found->offset);
}

} // namespace diomp::runtime
