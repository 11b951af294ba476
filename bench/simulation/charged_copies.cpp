// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The library's copies and combinations on a node take simulated time. The linker leads its calls
// of rma::copy_* and coll::find_kernel here (--wrap), and the real ones are called where data is
// moved.
#include "charged_copies.h"

#include "coll/collective.h"
#include "port.h"

#include <cstdint>
#include <simgrid/s4u/Actor.hpp>
#include <span>
#include <utility>
#include <vector>

namespace diomp::simulation {
namespace {

/// Sleeps of less are added up: each costs the simulation as much as a message.
constexpr double min_sleep_s = 200e-9;
/// Smaller blocks may hold more than data, and cost little to copy.
constexpr std::size_t max_control_bytes = 4096;

struct {
    double seconds_per_byte = 0;
    bool moves_data = true;
    std::span<const std::byte> slots;
    std::span<const std::byte> operands;
    std::vector<double> debts; ///< [actor]
} state;

bool is_in(std::span<const std::byte> memory, const void *operand) {
    return reinterpret_cast<std::uintptr_t>(operand) -
               reinterpret_cast<std::uintptr_t>(memory.data()) <
           memory.size();
}

bool is_of_others(const void *operand) {
    return is_in(state.slots, operand) || is_in(state.operands, operand);
}

void charge(std::size_t nbytes) {
    auto const actor = static_cast<std::size_t>(simgrid::s4u::this_actor::get_pid());
    if (state.debts.size() <= actor) {
        state.debts.resize(actor + 1, 0);
    }
    state.debts[actor] += static_cast<double>(nbytes) * state.seconds_per_byte;
    if (state.debts[actor] >= min_sleep_s) {
        spend(std::exchange(state.debts[actor], 0));
    }
}

bool is_skipped(std::size_t nbytes) { return !state.moves_data && nbytes > max_control_bytes; }

coll::combine_function real_sum = nullptr;

/// An operand in a stage buffer, or in another rank's memory, comes from another core; one that a
/// message has brought is in this core's memory.
void charged_sum(void *out, const void *a, const void *b, std::size_t count) {
    std::size_t const nbytes = count * sizeof(double);
    charge((is_of_others(a) ? nbytes : 0) + (is_of_others(b) ? nbytes : 0));
    if (!is_skipped(nbytes)) {
        real_sum(out, a, b, count);
    }
}

coll::combine_function charged(coll::combine_function real) {
    real_sum = real;
    return charged_sum;
}

} // namespace

void charge_copies(const copy_costs &costs) {
    state.seconds_per_byte = costs.seconds_per_byte;
    state.moves_data = costs.moves_data;
    state.slots = costs.slots;
}

void charge_operands(std::span<const std::byte> operands) { state.operands = operands; }

} // namespace diomp::simulation

extern "C" {

using diomp::simulation::charge;
using diomp::simulation::is_skipped;

int real_copy_cached(void *to, const void *from, std::size_t nbytes) noexcept
    __asm__("__real__ZN5diomp3rma11copy_cachedEPvPKvm");
int copy_cached(void *to, const void *from, std::size_t nbytes) noexcept
    __asm__("__wrap__ZN5diomp3rma11copy_cachedEPvPKvm");
void real_copy_streaming(void *to, const void *from,
                         std::size_t nbytes) __asm__("__real__ZN5diomp3rma14copy_streamingEPvPKvm");
void copy_streaming(void *to, const void *from,
                    std::size_t nbytes) __asm__("__wrap__ZN5diomp3rma14copy_streamingEPvPKvm");

int copy_cached(void *to, const void *from, std::size_t nbytes) noexcept {
    charge(nbytes);
    return is_skipped(nbytes) ? 0 : real_copy_cached(to, from, nbytes);
}

void copy_streaming(void *to, const void *from, std::size_t nbytes) {
    charge(nbytes);
    if (!is_skipped(nbytes)) {
        real_copy_streaming(to, from, nbytes);
    }
}

diomp::coll::combine_function
real_find_kernel(ompx_type_t type, ompx_op_t op, diomp::coll::instruction_set isa) __asm__(
    "__real__ZN5diomp4coll11find_kernelEiiNS0_15instruction_setE");
diomp::coll::combine_function
find_kernel(ompx_type_t type, ompx_op_t op, diomp::coll::instruction_set isa) __asm__(
    "__wrap__ZN5diomp4coll11find_kernelEiiNS0_15instruction_setE");

diomp::coll::combine_function find_kernel(ompx_type_t type, ompx_op_t op,
                                          diomp::coll::instruction_set isa) {
    diomp::coll::combine_function const real = real_find_kernel(type, op, isa);
    return type == OMPX_DOUBLE && op == OMPX_SUM ? diomp::simulation::charged(real) : real;
}

} // extern "C"
