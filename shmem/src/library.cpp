// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start and end, queries.
#include "library.h"

#include "shmem/library.h"
#include "static_data.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace diomp_shmem {

void fail(const char *function, const char *text) {
    (void)std::fprintf(stderr, "libdiomp-shmem: PE %d: %s: %s\n", ompx_rank_num(), function, text);
    (void)std::fflush(nullptr);
    ompx_abort(1);
}

bool is_static(const void *address) {
    return std::any_of(g_state.static_data.begin(), g_state.static_data.end(),
                       [&](const static_range &range) { return range.contains(address); });
}

namespace {

bool is_pe(int pe) { return pe >= 0 && pe < g_state.num_ranks; }

/// The ranks of a group, which is that of a predefined team.
team describe_group(ompx_group_t group) {
    team result;
    result.group = group;
    result.own_pe = ompx_group_rank(group);
    result.world_pes.resize(static_cast<std::size_t>(ompx_group_size(group)));
    for (int pe = 0; pe < size_of(result); ++pe) {
        result.world_pes[static_cast<std::size_t>(pe)] = ompx_group_world_rank(group, pe);
    }
    return result;
}

void start(const char *function) {
    if (g_state.num_starts++ > 0) {
        return;
    }
    check(function, ompx_init());
    g_state.rank = ompx_rank_num();
    g_state.num_ranks = ompx_num_ranks();
    g_state.static_data = find_static_data();
    for (const static_range &range : g_state.static_data) {
        check(function, ompx_register_symmetric(range.base, range.nbytes));
    }
    g_state.world = describe_group(ompx_group_world);
    ompx_group_t node = OMPX_GROUP_NONE;
    check(function, ompx_group_split_node(ompx_group_world, &node));
    g_state.shared = describe_group(node);
    check(function, ompx_barrier_group(ompx_group_world));
    g_state.is_ready = true;
}

void end(const char *function) {
    require_ready(function);
    complete_contexts();
    check(function, ompx_barrier_group(ompx_group_world));
    if (--g_state.num_starts > 0) {
        return;
    }
    free_contexts_of(nullptr);
    free_active_sets();
    check(function, ompx_group_free(&g_state.shared.group));
    for (const static_range &range : g_state.static_data) {
        check(function, ompx_unregister_symmetric(range.base));
    }
    g_state.static_data.clear();
    g_state.is_ready = false;
}

void *remote_address(const void *address, int rank) {
    if (rank == g_state.rank && is_static(address)) {
        return const_cast<void *>(address);
    }
    return ompx_remote_ptr(address, rank);
}

} // namespace
} // namespace diomp_shmem

using namespace diomp_shmem;

extern "C" {

void shmem_init(void) { start(__func__); }

int shmem_init_thread(int requested, int *provided) {
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
        return -1;
    }
    start(__func__);
    if (provided != nullptr) {
        *provided = SHMEM_THREAD_MULTIPLE;
    }
    return 0;
}

void shmem_query_thread(int *provided) {
    require_ready(__func__);
    *provided = SHMEM_THREAD_MULTIPLE;
}

void shmem_query_initialized(int *initialized) { *initialized = g_state.is_ready ? 1 : 0; }

void shmem_finalize(void) { end(__func__); }

void shmem_global_exit(int status) {
    (void)std::fflush(nullptr);
    ompx_abort(status);
}

int shmem_my_pe(void) {
    require_ready(__func__);
    return g_state.rank;
}

int shmem_n_pes(void) {
    require_ready(__func__);
    return g_state.num_ranks;
}

int shmem_pe_accessible(int pe) {
    require_ready(__func__);
    return is_pe(pe) ? 1 : 0;
}

int shmem_addr_accessible(const void *addr, int pe) {
    require_ready(__func__);
    if (!is_pe(pe)) {
        return 0;
    }
    ompx_addr_info_t info{};
    check(__func__, ompx_addr_info(addr, &info));
    bool const is_heap = info.kind == OMPX_MEM_SYMMETRIC && info.rank == g_state.rank;
    return is_heap || is_static(addr) ? 1 : 0;
}

void *shmem_ptr(const void *dest, int pe) {
    require_ready(__func__);
    return is_pe(pe) ? remote_address(dest, pe) : nullptr;
}

void *shmem_team_ptr(shmem_team_t handle, const void *dest, int pe) {
    require_ready(__func__);
    team *const members = team_of(handle);
    if (members == nullptr || pe < 0 || pe >= size_of(*members)) {
        return nullptr;
    }
    return remote_address(dest, members->world_pes[static_cast<std::size_t>(pe)]);
}

void shmem_info_get_version(int *major, int *minor) {
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

void shmem_info_get_name(char *name) { std::strcpy(name, SHMEM_VENDOR_STRING); }

void shmem_pcontrol(int, ...) {}

void start_pes(int) {
    if (!g_state.is_ready) {
        start(__func__);
    }
}

int _my_pe(void) { return shmem_my_pe(); }
int _num_pes(void) { return shmem_n_pes(); }

} // extern "C"
