// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Further transfers between devices: boxes, and transfers that fulfil a task's detach event.
#include "api/internal/detach.h"
#include "api/internal/omp_runtime.h"
#include "api/internal/rect.h"
#include "api/internal/state.h"
#include "diomp/target.h"
#include "offload/mover.h"
#include "offload/offload.h"

#include <utility>

using namespace diomp;

namespace {

using side = offload::transfer_side;

std::string describe(rma::direction dir, int rank, const side &dst, const side &src) {
    std::string const to = fmt::format("dst={}, dst_device={}", dst.pointer, dst.device);
    std::string const from = fmt::format("src={}, src_device={}", src.pointer, src.device);
    return dir == rma::direction::put ? fmt::format("rank={}, {}, {}", rank, to, from)
                                      : fmt::format("{}, rank={}, {}", to, rank, from);
}

int move_rect(const char *function, const void *site, rma::direction dir, int rank, const side &dst,
              const side &src, const api::rect_arguments &given) noexcept {
    return api::call(
        function, site,
        [&] {
            return fmt::format("{}, element_size={}, num_dims={}, ...",
                               describe(dir, rank, dst, src), given.element_size, given.num_dims);
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto shape = api::make_box(given);
            DIOMP_TRY(shape);
            DIOMP_TRY(
                api::check_box_transfer(running, rank, dst.pointer, src.pointer, shape.value()));
            bool const is_put = dir == rma::direction::put;
            auto moved = running.devices().mover().move_box(
                dir, world_rank{rank}, is_put ? dst : src, is_put ? src : dst, shape.value());
            DIOMP_TRY(moved);
            stats = {rma::name(moved.value()), api::box_bytes(shape.value()), rank};
            return {};
        });
}

int move_detached(const char *function, const void *site, rma::direction dir, int rank,
                  const side &dst, const side &src, std::size_t nbytes,
                  std::uintptr_t task) noexcept {
    return api::call(
        function, site,
        [&] { return fmt::format("{}, nbytes={}", describe(dir, rank, dst, src), nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst.pointer, src.pointer, nbytes));
            DIOMP_TRY(api::can_fulfill());
            bool const is_put = dir == rma::direction::put;
            ompx_event_t event = nullptr;
            offload::translation unused;
            auto moved = running.devices().mover().move(
                {.dir = dir, .nonblocking = true, .event = &event}, world_rank{rank},
                is_put ? dst : src, is_put ? src : dst, nbytes, unused);
            DIOMP_TRY(moved);
            api::fulfil_after(running, event, function, task);
            stats = {rma::name(moved.value()), nbytes, rank};
            return {};
        });
}

} // namespace

extern "C" {

int ompx_target_put_rect(int rank, void *dst, int dst_device, const void *src, int src_device,
                         size_t element_size, int num_dims, const size_t *volume,
                         const size_t *dst_offsets, const size_t *src_offsets,
                         const size_t *dst_dimensions, const size_t *src_dimensions) noexcept {
    return move_rect(
        "ompx_target_put_rect", DIOMP_SITE, rma::direction::put, rank,
        {dst, dst_device, "dst_device"}, {src, src_device, "src_device"},
        {element_size, num_dims, volume, dst_offsets, src_offsets, dst_dimensions, src_dimensions});
}

int ompx_target_get_rect(void *dst, int dst_device, int rank, const void *src, int src_device,
                         size_t element_size, int num_dims, const size_t *volume,
                         const size_t *dst_offsets, const size_t *src_offsets,
                         const size_t *dst_dimensions, const size_t *src_dimensions) noexcept {
    return move_rect(
        "ompx_target_get_rect", DIOMP_SITE, rma::direction::get, rank,
        {dst, dst_device, "dst_device"}, {src, src_device, "src_device"},
        {element_size, num_dims, volume, src_offsets, dst_offsets, src_dimensions, dst_dimensions});
}

// omp_event_handle_t is a pointer-sized integer or pointer in all ABIs that have it.
OMPX_API_ int ompx_target_put_detach(int rank, void *dst, int dst_device, const void *src,
                                     int src_device, size_t nbytes, std::uintptr_t event) noexcept {
    return move_detached("ompx_target_put_detach", DIOMP_SITE, rma::direction::put, rank,
                         {dst, dst_device, "dst_device"}, {src, src_device, "src_device"}, nbytes,
                         event);
}

OMPX_API_ int ompx_target_get_detach(void *dst, int dst_device, int rank, const void *src,
                                     int src_device, size_t nbytes, std::uintptr_t event) noexcept {
    return move_detached("ompx_target_get_detach", DIOMP_SITE, rma::direction::get, rank,
                         {dst, dst_device, "dst_device"}, {src, src_device, "src_device"}, nbytes,
                         event);
}

} // extern "C"
