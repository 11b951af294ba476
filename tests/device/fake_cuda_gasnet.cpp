// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GASNet-EX's memory kinds ask of the driver beyond what the runtime and LLVM's plugin do.
#include "device/fake_cuda.h"

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int attribute_context = 1;
constexpr int attribute_memory_type = 2;
constexpr int attribute_sync_memops = 6;
constexpr int attribute_is_managed = 8;

/// nullptr: not the beginning of what cuMemAlloc has given.
allocation *allocated_at(device_address where) {
    auto const found = all().allocations.find(where);
    return found == all().allocations.end() ? nullptr : &found->second;
}

} // namespace

EXPORTED int cuPointerGetAttributes(unsigned count, const int *which, void **into,
                                    device_address where) {
    FAKE_CUDA_ENTER
    int const device = owner_of(where);
    for (unsigned i = 0; i < count; ++i) {
        if (which[i] == attribute_context) {
            // Mapped memory belongs to none.
            allocation const *const of = allocated_at(where);
            *static_cast<void **>(into[i]) =
                of == nullptr ? nullptr : &all().devices[static_cast<std::size_t>(device)];
        } else if (which[i] == attribute_memory_type) {
            *static_cast<unsigned *>(into[i]) = device < 0 ? 0 : 2;
        } else if (which[i] == attribute_is_managed) {
            *static_cast<unsigned *>(into[i]) = 0;
        } else {
            return complain(__func__, "attribute", invalid_value);
        }
    }
    return ok;
}

EXPORTED int cuPointerSetAttribute(const void * /*value*/, int which, device_address where) {
    FAKE_CUDA_ENTER_CONTEXT
    if (which != attribute_sync_memops || allocated_at(where) == nullptr) {
        return complain(__func__, "attribute or address", invalid_value);
    }
    return ok;
}
