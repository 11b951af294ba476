// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/mapping.h"

#include "base/sizes.h"

#include <cstdint>
#include <vector>

namespace diomp::device::cuda {

result<address_range> address_range::reserve(const library &driver, std::size_t size_bytes,
                                             std::size_t alignment, address preferred) {
    address base = 0;
    code outcome = driver.mem_address_reserve(&base, size_bytes, alignment, preferred, 0);
    if (outcome != success && preferred != 0) {
        outcome = driver.mem_address_reserve(&base, size_bytes, alignment, 0, 0);
    }
    if (outcome != success) {
        return cuda_error(driver, "cuMemAddressReserve of " + format_size(size_bytes), outcome);
    }
    return address_range(driver, base, size_bytes);
}

address_range::~address_range() {
    if (base_ != 0) {
        report(*driver_, driver_->mem_address_free(base_, size_bytes_), "cuMemAddressFree");
    }
}

result<physical_memory> physical_memory::create(const library &driver, std::size_t size_bytes,
                                                const allocation_properties &of) {
    handle made = 0;
    code const outcome = driver.mem_create(&made, size_bytes, &of, 0);
    if (outcome != success) {
        return cuda_error(driver,
                          "cuMemCreate of " + format_size(size_bytes) + " on device " +
                              std::to_string(of.where.id),
                          outcome);
    }
    return physical_memory(driver, made, size_bytes);
}

result<physical_memory> physical_memory::import(const library &driver, int fd,
                                                std::size_t size_bytes) {
    handle made = 0;
    // The driver takes the descriptor's number as a pointer.
    auto *const fd_as_pointer = reinterpret_cast<void *>(static_cast<std::intptr_t>(fd));
    DIOMP_TRY(check(driver, driver.mem_import(&made, fd_as_pointer, handle_descriptor),
                    "cuMemImportFromShareableHandle"));
    return physical_memory(driver, made, size_bytes);
}

physical_memory::~physical_memory() {
    if (base_ != 0) {
        report(*driver_, driver_->mem_unmap(base_, size_bytes_), "cuMemUnmap");
    }
    if (physical_ != 0) {
        report(*driver_, driver_->mem_release(physical_), "cuMemRelease");
    }
}

status physical_memory::map(address to) {
    DIOMP_TRY(check(*driver_, driver_->mem_map(to, size_bytes_, 0, physical_, 0), "cuMemMap"));
    base_ = to;
    return {};
}

status physical_memory::grant_access(std::span<const ordinal> devices) {
    std::vector<access_description> wanted;
    for (ordinal const device : devices) {
        wanted.push_back({.who = {.id = device}});
    }
    return check(*driver_,
                 driver_->mem_set_access(base_, size_bytes_, wanted.data(), wanted.size()),
                 "cuMemSetAccess");
}

} // namespace diomp::device::cuda
