// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions for the bindings: error reports, transfers of sections, and whose memory an address is.
#include "api/internal/put_signal.h"
#include "api/internal/state.h"
#include "diomp/binding.hpp"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/mover.h"
#include "offload/offload.h"
#include "rma/box.h"
#include "rma/box_transfers.h"
#include "rma/rma.h"

using namespace diomp;

constinit thread_local const void *ompx_fortran_site = nullptr;

int ompx_fortran_misuse(const char *function, const char *arguments, int status, const char *what,
                        const char *remedy) noexcept {
    return api::call(
        function, DIOMP_SITE, [&] { return std::string(arguments); },
        [&](runtime::runtime &, api::call_stats &) -> diomp::status {
            return error(static_cast<ompx_status>(status), what, remedy);
        });
}

namespace {

std::string describe(int rank, const ompx_fortran_sections &given) {
    return fmt::format("rank={}, dst={}, src={}, element_bytes={}, sections of {} dimensions", rank,
                       given.dst, given.src, given.element_bytes, given.num_dims);
}

/// Runs move_section(transfers, shape) -> result<path> in the frame of a public function.
template <typename Move>
int move(const char *function, const void *site, int rank, const ompx_fortran_sections &given,
         const std::ptrdiff_t *remote_strides, const std::ptrdiff_t *local_strides,
         Move &&move_section) {
    auto const n = static_cast<std::size_t>(given.num_dims);
    rma::section const shape{
        given.element_bytes, {given.counts, n}, {remote_strides, n}, {local_strides, n}};
    return api::call(
        function, site, [&] { return describe(rank, given); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            std::size_t const nbytes = shape.total_bytes();
            DIOMP_TRY(api::check_transfer(running, rank, given.dst, given.src, nbytes));
            auto moved = move_section(running.transfers(), shape);
            DIOMP_TRY(moved);
            stats = {rma::name(moved.value()), nbytes, rank};
            return {};
        });
}

int move_on_devices(const char *function, const void *site, rma::direction dir, int rank,
                    const ompx_fortran_sections &given, int dst_device, int src_device) {
    bool const is_put = dir == rma::direction::put;
    auto const n = static_cast<std::size_t>(given.num_dims);
    rma::section const shape{given.element_bytes,
                             {given.counts, n},
                             {is_put ? given.dst_strides : given.src_strides, n},
                             {is_put ? given.src_strides : given.dst_strides, n}};
    offload::transfer_side const dst{given.dst, dst_device, "dst_device"};
    offload::transfer_side const src{given.src, src_device, "src_device"};
    return api::call(
        function, site,
        [&] {
            return fmt::format("{}, dst_device={}, src_device={}", describe(rank, given),
                               dst_device, src_device);
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            std::size_t const nbytes = shape.total_bytes();
            DIOMP_TRY(api::check_transfer(running, rank, given.dst, given.src, nbytes));
            auto moved = running.devices().mover().move_box(
                dir, world_rank{rank}, is_put ? dst : src, is_put ? src : dst, shape);
            DIOMP_TRY(moved);
            stats = {rma::name(moved.value()), nbytes, rank};
            return {};
        });
}

/// Runs start(signals, walk) -> result<path> for a put with signal.
template <typename Start>
int put_signal(const char *function, const void *site, int rank, const ompx_fortran_sections &given,
               const rma::signal_update &change, Start &&start) {
    return move(function, site, rank, given, given.dst_strides, given.src_strides,
                [&](rma::transfers &transfers, const rma::section &shape) -> result<rma::path> {
                    DIOMP_TRY(api::check_signal(change));
                    auto walk = rma::box_walk::make(shape);
                    DIOMP_TRY(walk);
                    return start(transfers.signals(), walk.value());
                });
}

} // namespace

int ompx_fortran_put(const char *function, int rank, const ompx_fortran_sections *given) noexcept {
    return move(function, DIOMP_SITE, rank, *given, given->dst_strides, given->src_strides,
                [&](rma::transfers &transfers, const rma::section &shape) {
                    return transfers.boxes().put(world_rank{rank}, given->dst, given->src, shape);
                });
}

int ompx_fortran_get(const char *function, int rank, const ompx_fortran_sections *given) noexcept {
    return move(function, DIOMP_SITE, rank, *given, given->src_strides, given->dst_strides,
                [&](rma::transfers &transfers, const rma::section &shape) {
                    return transfers.boxes().get(world_rank{rank}, given->src, given->dst, shape);
                });
}

int ompx_fortran_put_signal(const char *function, int rank, const ompx_fortran_sections *given,
                            std::uint64_t *signal, std::uint64_t value, int op) noexcept {
    rma::signal_update const change{signal, value, static_cast<ompx_signal_op_t>(op)};
    return put_signal(function, DIOMP_SITE, rank, *given, change,
                      [&](rma::signals &signals, const rma::box_walk &walk) {
                          return signals.put_box(world_rank{rank}, given->dst, given->src, walk,
                                                 change);
                      });
}

int ompx_fortran_put_signal_nb(const char *function, int rank, const ompx_fortran_sections *given,
                               std::uint64_t *signal, std::uint64_t value, int op,
                               ompx_event **event) noexcept {
    rma::signal_update const change{signal, value, static_cast<ompx_signal_op_t>(op)};
    return put_signal(function, DIOMP_SITE, rank, *given, change,
                      [&](rma::signals &signals, const rma::box_walk &walk) {
                          return signals.start_box(world_rank{rank}, given->dst, given->src, walk,
                                                   change, event);
                      });
}

int ompx_fortran_target_put(const char *function, int rank, const ompx_fortran_sections *given,
                            int dst_device, int src_device) noexcept {
    return move_on_devices(function, DIOMP_SITE, rma::direction::put, rank, *given, dst_device,
                           src_device);
}

int ompx_fortran_target_get(const char *function, int rank, const ompx_fortran_sections *given,
                            int dst_device, int src_device) noexcept {
    return move_on_devices(function, DIOMP_SITE, rma::direction::get, rank, *given, dst_device,
                           src_device);
}

int ompx_device_memory_of(int device, ompx_device_memory *found) noexcept {
    return api::call(
        "ompx_device_memory_of", DIOMP_SITE, [&] { return fmt::format("device={}", device); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(running.devices().segments().segment_of(device));
            offload::accelerator const *const on =
                running.devices().segments().accelerator_of(device);
            *found = {0, 0};
            if (on != nullptr) {
                *found = {static_cast<int>(on->made_by), on->id.value()};
            }
            return {};
        });
}

int ompx_device_of_address(const void *address) noexcept {
    int device = -1;
    api::call(
        "ompx_device_of_address", DIOMP_SITE, [&] { return fmt::format("address={}", address); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto const *const segment = running.devices().segments().table().containing(address);
            if (segment != nullptr) {
                device = segment->device();
            }
            return {};
        });
    return device;
}
