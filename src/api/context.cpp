// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contexts: transfers that are completed apart from all others.
#include "api/internal/contexts.h"
#include "diomp/nonblocking.h"

#include <memory>

using namespace diomp;

namespace {

std::string describe(ompx_context_t context, int rank, const void *dst, const void *src,
                     std::size_t nbytes) {
    return fmt::format("context={}, rank={}, dst={}, src={}, nbytes={}", fmt::ptr(context), rank,
                       dst, src, nbytes);
}

status start(runtime::runtime &running, api::call_stats &stats, ompx_context_t context,
             rma::direction dir, int rank, const void *remote, void *local, std::size_t nbytes) {
    auto used = api::use_context(running, context);
    DIOMP_TRY(used);
    DIOMP_TRY(api::check_transfer(running, rank, dir == rma::direction::put ? remote : local,
                                  dir == rma::direction::put ? local : remote, nbytes));
    auto taken = running.transfers().nonblocking().start_in(*used.value(), dir, world_rank{rank},
                                                            remote, local, nbytes);
    DIOMP_TRY(taken);
    stats = {rma::name(taken.value()), nbytes, rank};
    return {};
}

} // namespace

extern "C" {

int ompx_context_create(ompx_context_t *context) noexcept {
    return api::call(
        "ompx_context_create", DIOMP_SITE,
        [&] { return fmt::format("context={}", fmt::ptr(context)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(context, "context"));
            auto const made = running.transfers().nonblocking().contexts().insert(
                std::make_unique<ompx_context>());
            if (!made) {
                return error(OMPX_ERR_NOMEM, "this rank has too many contexts",
                             "free those that are not needed any more");
            }
            *context = *made;
            return {};
        });
}

int ompx_context_free(ompx_context_t *context) noexcept {
    return api::call(
        "ompx_context_free", DIOMP_SITE,
        [&] { return fmt::format("context={}", fmt::ptr(context)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(context, "context"));
            auto &transfers = running.transfers().nonblocking();
            {
                auto used = api::use_context(running, *context);
                DIOMP_TRY(used);
                DIOMP_TRY(transfers.complete(*used.value()));
            }
            transfers.contexts().remove(*context);
            *context = nullptr;
            return {};
        });
}

int ompx_context_put_nb(ompx_context_t context, int rank, void *dst, const void *src,
                        size_t nbytes) noexcept {
    return api::call(
        "ompx_context_put_nb", DIOMP_SITE,
        [&] { return describe(context, rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            return start(running, stats, context, rma::direction::put, rank, dst,
                         const_cast<void *>(src), nbytes);
        });
}

int ompx_context_get_nb(ompx_context_t context, void *dst, int rank, const void *src,
                        size_t nbytes) noexcept {
    return api::call(
        "ompx_context_get_nb", DIOMP_SITE,
        [&] { return describe(context, rank, dst, src, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            return start(running, stats, context, rma::direction::get, rank, src, dst, nbytes);
        });
}

int ompx_context_fence(ompx_context_t context) noexcept {
    return api::call(
        "ompx_context_fence", DIOMP_SITE,
        [&] { return fmt::format("context={}", fmt::ptr(context)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto used = api::use_context(running, context);
            DIOMP_TRY(used);
            return running.transfers().nonblocking().complete(*used.value());
        });
}

} // extern "C"
