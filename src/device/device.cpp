// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/device.h"

#include "base/sizes.h"

#include <fmt/core.h>

namespace diomp::device {

status check_device(const backend &of, device_id device) {
    if (device.value() >= 0 && device.value() < of.num_devices()) {
        return {};
    }
    return error(OMPX_ERR_ARG, fmt::format("device {} does not exist: {} has devices 0 to {}",
                                           device.value(), of.name(), of.num_devices() - 1));
}

result<std::unique_ptr<current_scope>> backend::make_current(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return error(OMPX_ERR_UNSUPPORTED, fmt::format("{} devices have no vendor libraries", name()));
}

status queue::reduce(const reduction & /*how*/, void * /*dst*/,
                     std::span<const void *const> /*sources*/, std::size_t /*count*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this device has no reduction kernels");
}

status queue::update(std::span<const word_update> /*all*/, std::uint64_t * /*old_values*/) {
    return error(OMPX_ERR_UNSUPPORTED, "this device has no kernel for atomic operations");
}

bool backend::can_reduce(device_id /*device*/, const reduction & /*how*/) { return false; }

error out_of_range(const memory &of, std::size_t offset_bytes, std::size_t nbytes) {
    return {OMPX_ERR_RANGE,
            fmt::format("cannot commit {} at offset {}: {} are reserved", format_size(nbytes),
                        offset_bytes, format_size(of.reserved_bytes()))};
}

} // namespace diomp::device
