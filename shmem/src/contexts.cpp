// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contexts, and the ordering and completion of operations.
#include "library.h"
#include "shmem/library.h"

#include <algorithm>

namespace diomp_shmem {
namespace {

context *context_of(shmem_ctx_t handle) { return reinterpret_cast<context *>(handle); }

/// DiOMP's contexts are for one thread at a time.
bool has_one_thread(long options) {
    return (options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED)) != 0;
}

int create(const char *function, team *members, long options, shmem_ctx_t *handle) {
    require_ready(function);
    *handle = SHMEM_CTX_INVALID;
    if (members == nullptr) {
        return -1;
    }
    auto *const created = new context;
    created->members = members;
    created->options = options;
    if (has_one_thread(options)) {
        check(function, ompx_context_create(&created->own));
    }
    std::lock_guard const lock(g_state.mutex);
    g_state.contexts.push_back(created);
    *handle = reinterpret_cast<shmem_ctx_t>(created);
    return 0;
}

void complete(const char *function, context &which) {
    if (which.own != nullptr) {
        check(function, ompx_context_fence(which.own));
    }
    if (which.has_others.exchange(false, std::memory_order_relaxed)) {
        check(function, ompx_fence_group(ompx_group_world));
    }
}

void quiet(const char *function, shmem_ctx_t ctx) {
    require_ready(function);
    if (ctx == SHMEM_CTX_DEFAULT) {
        check(function, ompx_fence_group(ompx_group_world));
    } else if (ctx != SHMEM_CTX_INVALID) {
        complete(function, *context_of(ctx));
    }
}

void fence(const char *function, shmem_ctx_t ctx) {
    require_ready(function);
    if (ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID && context_of(ctx)->own != nullptr) {
        check(function, ompx_context_fence(context_of(ctx)->own));
    }
    check(function, ompx_order());
}

} // namespace

target find_target(const char *function, shmem_ctx_t ctx, int pe) {
    if (ctx == SHMEM_CTX_DEFAULT) {
        return {pe, nullptr};
    }
    if (ctx == SHMEM_CTX_INVALID) {
        fail(function, "SHMEM_CTX_INVALID is no context");
    }
    context *const through = context_of(ctx);
    if (pe < 0 || pe >= size_of(*through->members)) {
        fail(function, "the PE is not in the context's team");
    }
    return {through->members->world_pes[static_cast<std::size_t>(pe)], through};
}

void free_context(context *which) {
    complete("shmem_ctx_destroy", *which);
    if (which->own != nullptr) {
        check("shmem_ctx_destroy", ompx_context_free(&which->own));
    }
    std::lock_guard const lock(g_state.mutex);
    std::erase(g_state.contexts, which);
    delete which;
}

void free_contexts_of(const team *members) {
    for (context *const each : std::vector<context *>(g_state.contexts)) {
        if (members == nullptr || each->members == members) {
            free_context(each);
        }
    }
}

void complete_contexts() {
    for (context *const each : g_state.contexts) {
        complete("shmem_finalize", *each);
    }
}

} // namespace diomp_shmem

using namespace diomp_shmem;

extern "C" {

int shmem_ctx_create(long options, shmem_ctx_t *ctx) {
    return create(__func__, &g_state.world, options, ctx);
}

int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx) {
    return create(__func__, team_of(team), options, ctx);
}

void shmem_ctx_destroy(shmem_ctx_t ctx) {
    require_ready(__func__);
    if (ctx == SHMEM_CTX_DEFAULT) {
        fail(__func__, "the default context cannot be destroyed");
    }
    if (ctx != SHMEM_CTX_INVALID) {
        free_context(context_of(ctx));
    }
}

int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team) {
    require_ready(__func__);
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID) {
        return -1;
    }
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : handle_of(context_of(ctx)->members);
    return 0;
}

void shmem_ctx_session_start(shmem_ctx_t, long, const shmem_ctx_session_config_t *, long) {
    require_ready(__func__);
}

void shmem_ctx_session_stop(shmem_ctx_t) { require_ready(__func__); }

void shmem_fence(void) {
    require_ready(__func__);
    check(__func__, ompx_order());
}
void shmem_ctx_fence(shmem_ctx_t ctx) { fence(__func__, ctx); }
void shmem_quiet(void) { quiet(__func__, SHMEM_CTX_DEFAULT); }
void shmem_ctx_quiet(shmem_ctx_t ctx) { quiet(__func__, ctx); }

void shmem_pe_quiet(const int *target_pes, size_t npes) {
    require_ready(__func__);
    for (size_t i = 0; i < npes; ++i) {
        check(__func__, ompx_fence_rank(target_pes[i]));
    }
}

void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes) {
    if (ctx == SHMEM_CTX_DEFAULT) {
        shmem_pe_quiet(target_pes, npes);
    } else if (npes > 0) {
        quiet(__func__, ctx);
    }
}

} // extern "C"
