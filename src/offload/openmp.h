// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program's OpenMP runtime and its device numbers.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <optional>
#include <vector>

struct diomp_plan_table;
struct diomp_variable_table;

namespace diomp::offload {

class remote_memory;

/// Functions of the program's OpenMP runtime. A function that it lacks is null.
struct openmp {
    int (*num_devices)() = nullptr;
    void *(*mapped_address)(const void *host, int device) = nullptr;
    void *(*allocate)(std::size_t nbytes, int device) = nullptr;
    void (*free)(void *address, int device) = nullptr;
    /// The devices that this rank drives, see alloc_directory.
    std::vector<int> (*driven_devices)() = nullptr;
    /// libomptarget's table of `declare target` variables; null until it has been loaded.
    const diomp_variable_table *(*variable_table)() = nullptr;
    /// libomptarget's table of plans; null if it has none.
    const diomp_plan_table *(*plan_table)() = nullptr;
    /// Whether a device belongs to another host.
    bool (*is_remote)(int device) = nullptr;
    /// Memory of such devices; null: it is not in the address space. Outlives the runtime.
    remote_memory *remote = nullptr;
    /// OMP_TARGET_OFFLOAD=DISABLED: every device number means the host, and nothing is mapped.
    bool is_disabled = false;
};

/// Thread-safe once attached. Functions take `num`, the result of count(), which takes a lock.
class openmp_devices {
public:
    /// Call before the first transfer; without it there are no devices.
    void attach(const openmp &functions) { functions_ = functions; }

    [[nodiscard]] int count() const {
        return functions_.num_devices == nullptr ? 0 : functions_.num_devices();
    }
    [[nodiscard]] bool is_host(int device, int num) const {
        return device == -1 || device == num || functions_.is_disabled;
    }
    [[nodiscard]] bool is_disabled() const { return functions_.is_disabled; }
    /// Fails unless the device is the host or a device.
    static status check(int device, int num, const char *argument);
    /// The error for a device of another host; nullopt: the device is local.
    [[nodiscard]] std::optional<error> remote_device_error(int device) const;

    /// Null: memory of remote devices is not in the address space.
    [[nodiscard]] remote_memory *remote() const { return functions_.remote; }
    [[nodiscard]] bool has_mappings() const { return functions_.mapped_address != nullptr; }
    /// The device address that `host` is mapped to; nullptr: it is not mapped.
    [[nodiscard]] void *mapped_address(const void *host, int device) const {
        return has_mappings() ? functions_.mapped_address(host, device) : nullptr;
    }
    [[nodiscard]] const diomp_variable_table *variable_table() const {
        return functions_.variable_table == nullptr ? nullptr : functions_.variable_table();
    }
    [[nodiscard]] const diomp_plan_table *plan_table() const {
        return functions_.plan_table == nullptr ? nullptr : functions_.plan_table();
    }
    /// Whether the device belongs to another host.
    [[nodiscard]] bool is_remote(int device) const {
        return functions_.is_remote != nullptr && functions_.is_remote(device);
    }
    /// Makes libomptarget start the device, by an allocation.
    void start(int device) const {
        if (functions_.allocate != nullptr) {
            functions_.free(functions_.allocate(1, device), device);
        }
    }

private:
    openmp functions_;
};

} // namespace diomp::offload
