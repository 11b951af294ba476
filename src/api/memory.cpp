// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp/memory.h"

#include "api/internal/state.h"
#include "channels/channel_registry.h"
#include "memory/counterparts.h"
#include "memory/directory.h"
#include "memory/memory.h"
#include "messaging/engine.h"
#include "runtime/collective_allocator.h"
#include "transport/conduit.h"

using namespace diomp;

extern "C" {

int ompx_register(void *ptr, size_t nbytes) noexcept {
    return api::call(
        "ompx_register", DIOMP_SITE, [&] { return fmt::format("ptr={}, nbytes={}", ptr, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_pointer(ptr, "ptr"));
            DIOMP_TRY(api::check_size(nbytes));
            if (nbytes == 0) {
                return error(OMPX_ERR_ARG, "an empty range cannot be registered",
                             "pass the size in bytes");
            }
            if (running.space().in_arena(ptr)) {
                return error(OMPX_ERR_ADDRESS, "the range is in a segment and reachable already",
                             "use it as it is");
            }
            stats.nbytes = nbytes;
            return running.directory().add(reinterpret_cast<std::uintptr_t>(ptr), nbytes);
        });
}

int ompx_unregister(void *ptr) noexcept {
    return api::call(
        "ompx_unregister", DIOMP_SITE, [&] { return fmt::format("ptr={}", ptr); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto const base = reinterpret_cast<std::uintptr_t>(ptr);
            if (running.space().counterparts().number_of(base)) {
                return error(OMPX_ERR_ADDRESS, "all ranks have registered the range together",
                             "call ompx_unregister_symmetric on all ranks");
            }
            return running.directory().remove(base);
        });
}

int ompx_register_symmetric(void *ptr, size_t nbytes) noexcept {
    return api::call(
        "ompx_register_symmetric", DIOMP_SITE,
        [&] { return fmt::format("ptr={}, nbytes={}", ptr, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_size(nbytes));
            if (nbytes == 0) {
                return error(OMPX_ERR_ARG, "an empty range cannot be registered",
                             "pass the size in bytes");
            }
            stats.nbytes = nbytes;
            DIOMP_TRY(running.allocator().register_symmetric(ptr, nbytes));
            api::refresh_fast_view(running);
            api::refresh_moved_data(running);
            return {};
        });
}

int ompx_unregister_symmetric(void *ptr) noexcept {
    return api::call(
        "ompx_unregister_symmetric", DIOMP_SITE, [&] { return fmt::format("ptr={}", ptr); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(running.allocator().unregister_symmetric(ptr));
            api::refresh_moved_data(running);
            return {};
        });
}

void *ompx_remote_ptr(const void *p, int rank) noexcept {
    api::runtime_access const here("ompx_remote_ptr");
    runtime::runtime *const running = here.running();
    if (running == nullptr || p == nullptr || !api::check_rank(*running, rank)) {
        return nullptr;
    }
    if (running->connection().transport().direct_base(world_rank{rank}) == nullptr) {
        return nullptr; // saves the fetch of a second-level pointer
    }
    auto location = running->space().locate(world_rank{rank}, p, 0);
    return location ? location.value().direct : nullptr;
}

void *ompx_global_ptr(const void *p, int rank, size_t *nbytes) noexcept {
    void *address = nullptr;
    api::call(
        "ompx_global_ptr", DIOMP_SITE, [&] { return fmt::format("p={}, rank={}", p, rank); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            DIOMP_TRY(api::check_pointer(p, "p"));
            auto range = running.space().counterpart(world_rank{rank}, p);
            DIOMP_TRY(range);
            address = range.value().address;
            if (nbytes != nullptr) {
                *nbytes = range.value().nbytes;
            }
            return {};
        });
    return address;
}

int ompx_addr_info(const void *p, ompx_addr_info_t *info) noexcept {
    return api::call(
        "ompx_addr_info", DIOMP_SITE, [&] { return fmt::format("p={}", p); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(info, "info"));
            *info = running.space().describe(p);
            return {};
        });
}

int ompx_segment_info(ompx_segment_info_t *info) noexcept {
    return api::call(
        "ompx_segment_info", DIOMP_SITE, [] { return std::string(); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(info, "info"));
            running.channels().release_closed();
            *info = running.segment().info();
            return {};
        });
}

} // extern "C"
