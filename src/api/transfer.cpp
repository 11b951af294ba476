// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// put and get. The inline path settles transfers on symmetric memory of directly mapped ranks; all
// others, and all errors, take the full path.
#include "api/detach.h"
#include "api/omp_runtime.h"
#include "api/rect.h"
#include "api/state.h"
#include "rma/copy.h"

using namespace diomp;
using api::g_fast;

namespace {

std::string describe_put(int rank, const void *dst, const void *src, std::size_t nbytes) {
    return fmt::format("rank={}, dst={}, src={}, nbytes={}", rank, dst, src, nbytes);
}

std::string describe_get(const void *dst, int rank, const void *src, std::size_t nbytes) {
    return fmt::format("dst={}, rank={}, src={}, nbytes={}", dst, rank, src, nbytes);
}

/// Remote address of a transfer that the inline path may do, else nullptr.
[[gnu::always_inline]] inline std::byte *fast_place(int rank, const void *remote,
                                                    std::size_t nbytes) {
    auto const address = reinterpret_cast<std::uintptr_t>(remote);
    std::uint64_t const offset = address - g_fast.own_base;
    std::uint64_t const extent = g_fast.extent.load(std::memory_order_relaxed);
    std::size_t const entry = api::fast_view::entry_of(rank);
    if (g_fast.rank[entry] == rank && offset < extent && nbytes <= extent - offset) [[likely]] {
        return reinterpret_cast<std::byte *>(address +
                                             static_cast<std::uintptr_t>(g_fast.distance[entry]));
    }
    return nullptr;
}

template <typename Move>
status account_for(api::account &counted, std::size_t nbytes, Move &&move) {
    auto moved = move();
    DIOMP_TRY(moved);
    counted = {rma::name(moved.value()), nbytes};
    return {};
}

// Their arguments stand where those of the public calls do, so that these move nothing on the way.
[[gnu::noinline]] int put_fully(int rank, void *dst, const void *src, std::size_t nbytes,
                                const char *function, const void *site) noexcept {
    return api::call(
        function, site, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            return account_for(counted, nbytes, [&] {
                return running.transfers().put(world_rank{rank}, dst, src, nbytes);
            });
        });
}

[[gnu::noinline]] int get_fully(void *dst, int rank, const void *src, std::size_t nbytes,
                                const char *function, const void *site) noexcept {
    return api::call(
        function, site, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            return account_for(counted, nbytes, [&] {
                return running.transfers().get(world_rank{rank}, src, dst, nbytes);
            });
        });
}

[[gnu::always_inline]] inline int put(const char *function, const void *site, int rank, void *dst,
                                      const void *src, std::size_t nbytes) {
    std::byte *place = fast_place(rank, dst, nbytes);
    if (place != nullptr && src != nullptr) [[likely]] {
        return rma::copy_bytes(place, src, nbytes, g_fast.stream_threshold);
    }
    return put_fully(rank, dst, src, nbytes, function, site);
}

[[gnu::always_inline]] inline int get(const char *function, const void *site, void *dst, int rank,
                                      const void *src, std::size_t nbytes) {
    std::byte *place = fast_place(rank, src, nbytes);
    if (place != nullptr && dst != nullptr) [[likely]] {
        return rma::copy_bytes(dst, place, nbytes, g_fast.stream_threshold);
    }
    return get_fully(dst, rank, src, nbytes, function, site);
}

std::string describe_rect(int rank, const void *dst, const void *src, std::size_t element_size,
                          int num_dims) {
    return fmt::format("rank={}, dst={}, src={}, element_size={}, num_dims={}, ...", rank, dst, src,
                       element_size, num_dims);
}

[[gnu::noinline]] int put_nb_fully(const void *site, int rank, void *dst, const void *src,
                                   std::size_t nbytes, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_put_nb", site, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            return account_for(counted, nbytes, [&] {
                return running.transfers().start_put(world_rank{rank}, dst, src, nbytes, event);
            });
        });
}

[[gnu::noinline]] int get_nb_fully(const void *site, void *dst, int rank, const void *src,
                                   std::size_t nbytes, ompx_event_t *event) noexcept {
    return api::call(
        "ompx_get_nb", site, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            return account_for(counted, nbytes, [&] {
                return running.transfers().start_get(world_rank{rank}, src, dst, nbytes, event);
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
    std::byte *place = fast_place(rank, dst, nbytes);
    if (place != nullptr && src != nullptr) [[likely]] {
        if (event != nullptr) {
            *event = nullptr; // first, so that the call may end in the copy
        }
        return rma::copy_bytes(place, src, nbytes, g_fast.stream_threshold);
    }
    return put_nb_fully(DIOMP_SITE, rank, dst, src, nbytes, event);
}

int ompx_get_nb(void *dst, int rank, const void *src, size_t nbytes, ompx_event_t *event) noexcept {
    std::byte *place = fast_place(rank, src, nbytes);
    if (place != nullptr && dst != nullptr) [[likely]] {
        if (event != nullptr) {
            *event = nullptr; // first, so that the call may end in the copy
        }
        return rma::copy_bytes(dst, place, nbytes, g_fast.stream_threshold);
    }
    return get_nb_fully(DIOMP_SITE, dst, rank, src, nbytes, event);
}

// omp_event_handle_t is a pointer-sized integer or pointer in all ABIs that have it.
OMPX_API_ int ompx_put_detach(int rank, void *dst, const void *src, size_t nbytes,
                              std::uintptr_t event) noexcept {
    return api::call(
        "ompx_put_detach", DIOMP_SITE, [&] { return describe_put(rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            DIOMP_TRY(api::can_fulfill());
            return account_for(counted, nbytes, [&] {
                return running.transfers().put_then(world_rank{rank}, dst, src, nbytes,
                                                    api::fulfil_later("ompx_put_detach", event));
            });
        });
}

OMPX_API_ int ompx_get_detach(void *dst, int rank, const void *src, size_t nbytes,
                              std::uintptr_t event) noexcept {
    return api::call(
        "ompx_get_detach", DIOMP_SITE, [&] { return describe_get(dst, rank, src, nbytes); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            DIOMP_TRY(api::can_fulfill());
            return account_for(counted, nbytes, [&] {
                return running.transfers().get_then(world_rank{rank}, src, dst, nbytes,
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
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, 1));
            auto shape = api::make_box({element_size, num_dims, volume, dst_offsets, src_offsets,
                                        dst_dimensions, src_dimensions});
            DIOMP_TRY(shape);
            return account_for(counted, api::box_bytes(shape.value()), [&] {
                return running.transfers().put_box(world_rank{rank}, dst, src, shape.value());
            });
        });
}

int ompx_get_rect(void *dst, int rank, const void *src, size_t element_size, int num_dims,
                  const size_t *volume, const size_t *dst_offsets, const size_t *src_offsets,
                  const size_t *dst_dimensions, const size_t *src_dimensions) noexcept {
    return api::call(
        "ompx_get_rect", DIOMP_SITE,
        [&] { return describe_rect(rank, dst, src, element_size, num_dims); },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, 1));
            auto shape = api::make_box({element_size, num_dims, volume, src_offsets, dst_offsets,
                                        src_dimensions, dst_dimensions});
            DIOMP_TRY(shape);
            return account_for(counted, api::box_bytes(shape.value()), [&] {
                return running.transfers().get_box(world_rank{rank}, src, dst, shape.value());
            });
        });
}

int ompx_put_signal(int rank, void *dst, const void *src, size_t nbytes, uint64_t *signal,
                    uint64_t value, ompx_signal_op_t op) noexcept {
    return api::call(
        "ompx_put_signal", DIOMP_SITE,
        [&] {
            return fmt::format("{}, signal={}, value={}, op={}",
                               describe_put(rank, dst, src, nbytes), fmt::ptr(signal), value,
                               static_cast<int>(op));
        },
        [&](runtime::runtime &running, api::account &counted) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst, src, nbytes));
            DIOMP_TRY(api::check_pointer(signal, "signal"));
            if (op != OMPX_SIGNAL_SET && op != OMPX_SIGNAL_ADD) {
                return error(OMPX_ERR_ARG, "unknown signal operation",
                             "pass OMPX_SIGNAL_SET or OMPX_SIGNAL_ADD");
            }
            return account_for(counted, nbytes + sizeof(*signal), [&] {
                return running.transfers().put_signal(world_rank{rank}, dst, src, nbytes, signal,
                                                      value, op);
            });
        });
}

} // extern "C"
