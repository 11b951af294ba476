// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory: the calls of diomp/target.h.
#include "diomp/target.h"

#include "api/internal/omp_runtime.h"
#include "api/internal/state.h"
#include "api/internal/translation_epoch.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/mover.h"
#include "offload/offload.h"
#include "rma/copy.h"
#include "rma/rma.h"
#include "runtime/collective_allocator.h"

#include <utility>

using namespace diomp;
using api::g_epoch;
using api::g_fast;

namespace {

/// A thread's recently used translations. Programs exchange few arrays with few ranks at a time.
struct cached_translation {
    bool is_put = false;
    int rank = -1;
    int remote_device = 0;
    int local_device = 0;
    offload::translation translation;
};
struct translation_cache {
    static constexpr unsigned num = 7;
    // At fixed addresses: a put after a fence waits for each dependent load.
    cached_translation put;
    cached_translation get;
    cached_translation others[num]; ///< of both; small, since static memory of threads is scarce
    unsigned oldest = 0;

    [[nodiscard]] cached_translation &current(bool is_put) { return is_put ? put : get; }
};
thread_local translation_cache t_cache;

[[gnu::always_inline]] inline bool matches(const cached_translation &known, int rank,
                                           const void *remote, int remote_device, const void *local,
                                           int local_device, std::size_t nbytes) {
    return known.rank == rank && known.remote_device == remote_device &&
           known.local_device == local_device && known.translation.there.contains(remote, nbytes) &&
           known.translation.here.contains(local, nbytes) &&
           known.translation.epoch == g_epoch.load(std::memory_order_acquire) &&
           known.translation.generation ==
               known.translation.peer_generation->load(std::memory_order_acquire);
}

/// Not inlined, so that the fast path saves no registers for it.
[[gnu::noinline]] const offload::translation *
find_cached_translation(bool is_put, int rank, const void *remote, int remote_device,
                        const void *local, int local_device, std::size_t nbytes) {
    cached_translation &current = t_cache.current(is_put);
    for (cached_translation &other : t_cache.others) {
        if (other.is_put == is_put &&
            matches(other, rank, remote, remote_device, local, local_device, nbytes)) {
            std::swap(other, current);
            other.is_put = is_put; // also if nothing was cached
            return &current.translation;
        }
    }
    return nullptr;
}

void cache_translation(bool is_put, int rank, int remote_device, int local_device,
                       const offload::translation &learned) {
    if (learned.epoch != 0 && g_fast.is_plain.load(std::memory_order_relaxed)) {
        t_cache.others[t_cache.oldest] = t_cache.current(is_put);
        t_cache.oldest = (t_cache.oldest + 1) % translation_cache::num;
        t_cache.current(is_put) = {is_put, rank, remote_device, local_device, learned};
    }
}

std::string describe(const char *order, int rank, const offload::transfer_side &dst,
                     const offload::transfer_side &src, std::size_t nbytes) {
    return fmt::format(fmt::runtime(order), fmt::arg("rank", rank), fmt::arg("dst", dst.pointer),
                       fmt::arg("dst_device", dst.device), fmt::arg("src", src.pointer),
                       fmt::arg("src_device", src.device), fmt::arg("nbytes", nbytes));
}

using side = offload::transfer_side;

/// A put or get without a cached translation.
[[gnu::noinline]] int move_slow_path(const char *function, const void *site,
                                     offload::transfer_mode how, int rank, const side &dst,
                                     const side &src, std::size_t nbytes) noexcept {
    bool const is_put = how.dir == rma::direction::put;
    return api::call(
        function, site,
        [&] {
            return describe(is_put ? "rank={rank}, dst={dst}, dst_device={dst_device}, "
                                     "src={src}, src_device={src_device}, nbytes={nbytes}"
                                   : "dst={dst}, dst_device={dst_device}, rank={rank}, "
                                     "src={src}, src_device={src_device}, nbytes={nbytes}",
                            rank, dst, src, nbytes);
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_transfer(running, rank, dst.pointer, src.pointer, nbytes));
            offload::translation learned;
            side const &remote = is_put ? dst : src;
            side const &local = is_put ? src : dst;
            auto moved = running.devices().mover().move(how, world_rank{rank}, remote, local,
                                                        nbytes, learned);
            DIOMP_TRY(moved);
            if (how.nonblocking && !running.transfers().all_direct()) {
                g_fast.fence_orders_only.store(false, std::memory_order_relaxed);
            }
            cache_translation(is_put, rank, remote.device, local.device, learned);
            stats = {rma::name(moved.value()), nbytes, rank};
            return {};
        });
}

/// Copies between the addresses that a translation gives.
[[gnu::always_inline]] inline int copy_translated(const offload::translation &translation,
                                                  bool is_put, void *dst, const void *src,
                                                  std::size_t nbytes) {
    offload::translated_range const &to = is_put ? translation.there : translation.here;
    offload::translated_range const &from = is_put ? translation.here : translation.there;
    return rma::copy_bytes(to.translate(dst), from.translate(src), nbytes, g_fast.stream_threshold);
}

/// A transfer by another cached translation, or by the slow path.
int move_uninlined(const char *function, const void *site, offload::transfer_mode how, int rank,
                   void *dst, int dst_device, const void *src, int src_device,
                   std::size_t nbytes) noexcept {
    bool const is_put = how.dir == rma::direction::put;
    auto const *const translation =
        is_put ? find_cached_translation(true, rank, dst, dst_device, src, src_device, nbytes)
               : find_cached_translation(false, rank, src, src_device, dst, dst_device, nbytes);
    if (translation == nullptr || (is_put ? src : dst) == nullptr) {
        return move_slow_path(function, site, how, rank, {dst, dst_device, "dst_device"},
                              {src, src_device, "src_device"}, nbytes);
    }
    if (how.event != nullptr) {
        *how.event = nullptr;
    }
    return copy_translated(*translation, is_put, dst, src, nbytes);
}

// Continuations of put and get that are not inlined: tail calls whose arguments all fit in
// registers, so that the fast path saves no register. A fence would have to wait for the stores of
// saved registers.

struct device_pair {
    int dst;
    int src;
};

[[gnu::noinline]] int put_uninlined(int rank, void *dst, device_pair on, const void *src,
                                    std::size_t nbytes, const void *site) noexcept {
    return move_uninlined("ompx_target_put", site, {.dir = rma::direction::put}, rank, dst, on.dst,
                          src, on.src, nbytes);
}

[[gnu::noinline]] int get_uninlined(void *dst, device_pair on, int rank, const void *src,
                                    std::size_t nbytes, const void *site) noexcept {
    return move_uninlined("ompx_target_get", site, {.dir = rma::direction::get}, rank, dst, on.dst,
                          src, on.src, nbytes);
}

/// Whether the current translation covers the transfer.
[[gnu::always_inline]] inline bool matches_current(bool is_put, int rank, const void *remote,
                                                   int remote_device, const void *local,
                                                   int local_device, std::size_t nbytes) {
    return local != nullptr && matches(t_cache.current(is_put), rank, remote, remote_device, local,
                                       local_device, nbytes);
}

/// Transfers by the current translation.
[[gnu::always_inline]] inline int move_by_current(bool is_put, void *dst, const void *src,
                                                  std::size_t nbytes) {
    return copy_translated(t_cache.current(is_put).translation, is_put, dst, src, nbytes);
}

/// A non-blocking transfer; *how.event is null if it is complete on return.
int start(const char *function, const void *site, offload::transfer_mode how, int rank, void *dst,
          int dst_device, const void *src, int src_device, std::size_t nbytes) noexcept {
    bool const is_put = how.dir == rma::direction::put;
    bool const is_cached =
        is_put ? matches_current(true, rank, dst, dst_device, src, src_device, nbytes)
               : matches_current(false, rank, src, src_device, dst, dst_device, nbytes);
    if (!is_cached) {
        return move_uninlined(function, site, how, rank, dst, dst_device, src, src_device, nbytes);
    }
    if (how.event != nullptr) {
        *how.event = nullptr;
    }
    return move_by_current(is_put, dst, src, nbytes);
}

} // namespace

std::atomic<std::uint64_t> diomp::api::g_epoch{1};

void diomp::api::invalidate_translations() { g_epoch.fetch_add(1, std::memory_order_acq_rel); }

extern "C" {

void *ompx_target_alloc(size_t nbytes, int device, uintptr_t allocator) noexcept {
    void *made = nullptr;
    api::call(
        "ompx_target_alloc", DIOMP_SITE,
        [&] {
            return fmt::format("nbytes={}, device={}, allocator={}", nbytes, device, allocator);
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_size(nbytes));
            ompx_mem_kind_t const kind = api::kind_of_allocator(allocator);
            if (kind == OMPX_MEM_NONE) {
                return error(OMPX_ERR_ARG,
                             fmt::format("{} is not an allocator of DiOMP", allocator),
                             "pass ompx_symmetric_mem_alloc, ompx_asymmetric_mem_alloc or "
                             "ompx_local_mem_alloc");
            }
            auto allocated = running.allocator().allocate_on_device(device, kind, nbytes);
            DIOMP_TRY(allocated);
            stats = {"device", nbytes};
            made = allocated.value();
            return {};
        });
    return made;
}

int ompx_target_free(void *ptr, int device) noexcept {
    return api::call(
        "ompx_target_free", DIOMP_SITE,
        [&] { return fmt::format("ptr={}, device={}", ptr, device); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            return running.allocator().free_on_device(device, ptr);
        });
}

int ompx_target_put(int rank, void *dst, int dst_device, const void *src, int src_device,
                    size_t nbytes) noexcept {
    if (matches_current(true, rank, dst, dst_device, src, src_device, nbytes)) [[likely]] {
        return move_by_current(true, dst, src, nbytes);
    }
    return put_uninlined(rank, dst, {dst_device, src_device}, src, nbytes, DIOMP_SITE);
}

int ompx_target_get(void *dst, int dst_device, int rank, const void *src, int src_device,
                    size_t nbytes) noexcept {
    if (matches_current(false, rank, src, src_device, dst, dst_device, nbytes)) [[likely]] {
        return move_by_current(false, dst, src, nbytes);
    }
    return get_uninlined(dst, {dst_device, src_device}, rank, src, nbytes, DIOMP_SITE);
}

int ompx_target_put_nb(int rank, void *dst, int dst_device, const void *src, int src_device,
                       size_t nbytes, ompx_event_t *event) noexcept {
    return start("ompx_target_put_nb", DIOMP_SITE,
                 {.dir = rma::direction::put, .nonblocking = true, .event = event}, rank, dst,
                 dst_device, src, src_device, nbytes);
}

int ompx_target_get_nb(void *dst, int dst_device, int rank, const void *src, int src_device,
                       size_t nbytes, ompx_event_t *event) noexcept {
    return start("ompx_target_get_nb", DIOMP_SITE,
                 {.dir = rma::direction::get, .nonblocking = true, .event = event}, rank, dst,
                 dst_device, src, src_device, nbytes);
}

int ompx_target_segment_info(int device, ompx_segment_info_t *info) noexcept {
    return api::call(
        "ompx_target_segment_info", DIOMP_SITE, [&] { return fmt::format("device={}", device); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(info, "info"));
            auto segment = running.devices().segments().segment_of(device);
            DIOMP_TRY(segment);
            *info = segment.value()->info();
            return {};
        });
}

} // extern "C"
