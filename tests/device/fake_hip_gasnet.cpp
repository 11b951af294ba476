// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What GASNet-EX's memory kinds ask of HIP beyond what the runtime does.
#include "device/fake_hip.h"

using namespace fake_hip;

namespace {

/// As of HIP 6.
struct pointer_attributes {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned flags;
};

constexpr int type_unregistered = 0;
constexpr int type_device = 2;

} // namespace

EXPORTED int hipInit(unsigned flags) {
    FAKE_HIP_ENTER
    return flags == 0 ? ok : invalid_value;
}

EXPORTED int hipDeviceGet(int *device, int number) {
    FAKE_HIP_ENTER
    if (number < 0 || number >= num_devices()) {
        return invalid_device;
    }
    *device = number;
    return ok;
}

EXPORTED int hipPointerGetAttributes(pointer_attributes *into, const void *where) {
    FAKE_HIP_ENTER
    allocation const *const of = holding(where);
    *into = {of == nullptr ? type_unregistered : type_device,
             of == nullptr ? -1 : of->device,
             const_cast<void *>(where),
             nullptr,
             0,
             0};
    return ok;
}
