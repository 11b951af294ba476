// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the library's copies on a node cost in simulated time.
#pragma once

#include <cstddef>
#include <span>

namespace diomp::simulation {

struct copy_costs {
    double seconds_per_byte = 0;
    bool moves_data = true;           ///< else large blocks cost time only
    std::span<const std::byte> slots; ///< memory in which ranks read each other's operands
};

/// From now on copies cost time; before, none. Call before the actors run.
void charge_copies(const copy_costs &costs);

/// The program's operands, which ranks read from each other's memory too.
void charge_operands(std::span<const std::byte> operands);

} // namespace diomp::simulation
