// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put and get. The fast path copies between symmetric memory of directly mapped ranks; all other
// transfers, and all errors, take the slow path.
#include "diomp/transfer.h"

#include "api/internal/addressable.h"
#include "api/internal/detach.h"
#include "api/internal/direct_address.h"
#include "api/internal/omp_runtime.h"
#include "api/internal/rect.h"
#include "api/internal/state.h"
#include "rma/box_transfers.h"
#include "rma/copy.h"
#include "rma/nonblocking_transfers.h"
#include "rma/rma.h"
#include "rma/signals.h"

using namespace diomp;
using api::direct_address;
using api::direct_static_address;
using api::g_fast;

namespace {

std::string describe_put(int rank, const void *dst, const void *src, std::size_t nbytes) {
    return fmt::format("rank={}, dst={}, src={}, nbytes={}", rank, dst, src, nbytes);
}

std::string describe_get(const void *dst, int rank, const void *src, std::size_t nbytes) {
    return fmt::format("dst={}, rank={}, src={}, nbytes={}", dst, rank, src, nbytes);
}

template <typename Move>
status record_transfer(api::call_stats &stats, int rank, std::size_t nbytes, Move &&move) {
    auto moved = move();
    DIOMP_TRY(moved);
    stats = {rma::name(moved.value()), nbytes, rank};
    return {};
}

// The arguments are in the registers of the public calls' arguments, so that a tail call moves
// none.
[[gnu::noinline]] int put_slow_path(int rank, void *dst, const void *src, std::size_t nbytes,
                                    const char *function, const void *site) noexcept {
    std::byte *const direct = direct_static_address(rank, dst, nbytes);
    if (direct != nullptr && src != nullptr) {
        return rma::put_bytes(direct, src, nbytes, g_fast.stream_threshold);
    }
    return api::call(
        function, site, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_put_addressable(running, dst, src, nbytes);
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().put(world_rank{rank}, dst, src, nbytes);
            });
        });
}

[[gnu::noinline]] int get_slow_path(void *dst, int rank, const void *src, std::size_t nbytes,
                                    const char *function, const void *site) noexcept {
    std::byte *const direct = direct_static_address(rank, src, nbytes);
    if (direct != nullptr && dst != nullptr) {
        return rma::copy_bytes(dst, direct, nbytes, g_fast.stream_threshold);
    }
    return api::call(
        function, site, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_get_addressable(running, dst, src, nbytes);
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().get(world_rank{rank}, src, dst, nbytes);
            });
        });
}

[[gnu::always_inline]] inline int put(const char *function, const void *site, int rank, void *dst,
                                      const void *src, std::size_t nbytes) {
    std::byte *direct = direct_address(rank, dst, nbytes);
    if (direct != nullptr && src != nullptr) [[likely]] {
        return rma::put_bytes(direct, src, nbytes, g_fast.stream_threshold);
    }
    return put_slow_path(rank, dst, src, nbytes, function, site);
}

[[gnu::always_inline]] inline int get(const char *function, const void *site, void *dst, int rank,
                                      const void *src, std::size_t nbytes) {
    std::byte *direct = direct_address(rank, src, nbytes);
    if (direct != nullptr && dst != nullptr) [[likely]] {
        return rma::copy_bytes(dst, direct, nbytes, g_fast.stream_threshold);
    }
    return get_slow_path(dst, rank, src, nbytes, function, site);
}

std::string describe_rect(int rank, const void *dst, const void *src, std::size_t element_size,
                          int num_dims) {
    return fmt::format("rank={}, dst={}, src={}, element_size={}, num_dims={}, ...", rank, dst, src,
                       element_size, num_dims);
}

/// A non-blocking transfer that is complete on return.
template <auto CopyLarge>
[[gnu::always_inline]] inline int copy_at_once(void *to, const void *from, std::size_t nbytes,
                                               ompx_event_t *event) {
    if (event != nullptr) {
        *event = nullptr; // first, so that the call may end in the copy
    }
    return rma::copy_bytes<CopyLarge>(to, from, nbytes, g_fast.stream_threshold);
}

[[gnu::noinline]] int put_nb_slow_path(const void *site, int rank, void *dst, const void *src,
                                       std::size_t nbytes, ompx_event_t *event) noexcept {
    std::byte *const direct = direct_static_address(rank, dst, nbytes);
    if (direct != nullptr && src != nullptr) {
        return copy_at_once<rma::copy_large_put>(direct, src, nbytes, event);
    }
    return api::call(
        "ompx_put_nb", site, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_put_addressable(running, dst, src, nbytes);
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().nonblocking().start_put(world_rank{rank}, dst, src,
                                                                   nbytes, event);
            });
        });
}

[[gnu::noinline]] int get_nb_slow_path(const void *site, void *dst, int rank, const void *src,
                                       std::size_t nbytes, ompx_event_t *event) noexcept {
    std::byte *const direct = direct_static_address(rank, src, nbytes);
    if (direct != nullptr && dst != nullptr) {
        return copy_at_once<rma::copy_large>(dst, direct, nbytes, event);
    }
    return api::call(
        "ompx_get_nb", site, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_get_addressable(running, dst, src, nbytes);
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().nonblocking().start_get(world_rank{rank}, src, dst,
                                                                   nbytes, event);
            });
        });
}

} // namespace

extern "C" {

int ompx_put(int rank, void *dst, const void *src, size_t nbytes) noexcept {
    return put("ompx_put", DIOMP_SITE, rank, dst, src, nbytes);
}

int ompx_get(void *dst, int rank, const void *src, size_t nbytes) noexcept {
    return get("ompx_get", DIOMP_SITE, dst, rank, src, nbytes);
}

int ompx_put_nb(int rank, void *dst, const void *src, size_t nbytes, ompx_event_t *event) noexcept {
    std::byte *direct = direct_address(rank, dst, nbytes);
    if (direct != nullptr && src != nullptr) [[likely]] {
        return copy_at_once<rma::copy_large_put>(direct, src, nbytes, event);
    }
    return put_nb_slow_path(DIOMP_SITE, rank, dst, src, nbytes, event);
}

int ompx_get_nb(void *dst, int rank, const void *src, size_t nbytes, ompx_event_t *event) noexcept {
    std::byte *direct = direct_address(rank, src, nbytes);
    if (direct != nullptr && dst != nullptr) [[likely]] {
        return copy_at_once<rma::copy_large>(dst, direct, nbytes, event);
    }
    return get_nb_slow_path(DIOMP_SITE, dst, rank, src, nbytes, event);
}

// omp_event_handle_t is a pointer-sized integer or pointer in all ABIs that have it.
OMPX_API_ int ompx_put_detach(int rank, void *dst, const void *src, size_t nbytes,
                              std::uintptr_t event) noexcept {
    return api::call(
        "ompx_put_detach", DIOMP_SITE, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_put_addressable(running, dst, src, nbytes);
            DIOMP_TRY(api::can_fulfill());
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().nonblocking().put_then(
                    world_rank{rank}, dst, src, nbytes,
                    api::fulfil_later("ompx_put_detach", event));
            });
        });
}

OMPX_API_ int ompx_get_detach(void *dst, int rank, const void *src, size_t nbytes,
                              std::uintptr_t event) noexcept {
    return api::call(
        "ompx_get_detach", DIOMP_SITE, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            api::check_get_addressable(running, dst, src, nbytes);
            DIOMP_TRY(api::can_fulfill());
            return record_transfer(stats, rank, nbytes, [&] {
                return running.transfers().nonblocking().get_then(
                    world_rank{rank}, src, dst, nbytes,
                    api::fulfil_later("ompx_get_detach", event));
            });
        });
}

int ompx_put_rect(int rank, void *dst, const void *src, size_t element_size, int num_dims,
                  const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                  const size_t *dst_dimensions, const size_t *src_dimensions) noexcept {
    return api::call(
        "ompx_put_rect", DIOMP_SITE,
        [&] { return describe_rect(rank, dst, src, element_size, num_dims); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto shape = api::make_box({element_size, num_dims, volume, dst_offsets, src_offsets,
                                        dst_dimensions, src_dimensions});
            DIOMP_TRY(shape);
            DIOMP_TRY(api::check_box_transfer(running, rank, dst, src, shape.value()));
            return record_transfer(stats, rank, api::box_bytes(shape.value()), [&] {
                return running.transfers().boxes().put(world_rank{rank}, dst, src, shape.value());
            });
        });
}

int ompx_get_rect(void *dst, int rank, const void *src, size_t element_size, int num_dims,
                  const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                  const size_t *dst_dimensions, const size_t *src_dimensions) noexcept {
    return api::call(
        "ompx_get_rect", DIOMP_SITE,
        [&] { return describe_rect(rank, dst, src, element_size, num_dims); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto shape = api::make_box({element_size, num_dims, volume, src_offsets, dst_offsets,
                                        src_dimensions, dst_dimensions});
            DIOMP_TRY(shape);
            DIOMP_TRY(api::check_box_transfer(running, rank, dst, src, shape.value()));
            return record_transfer(stats, rank, api::box_bytes(shape.value()), [&] {
                return running.transfers().boxes().get(world_rank{rank}, src, dst, shape.value());
            });
        });
}

} // extern "C"
