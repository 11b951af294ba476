// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Teams are groups of ranks.
#include "library.h"
#include "shmem/library.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

using namespace diomp_shmem;

namespace {

/// PEs start + i * stride, i < size, of a parent.
struct subset {
    int start = 0;
    int stride = 1;
    int size = 0;
};

bool is_valid(const subset &which, const team &parent) {
    if (which.size < 1 || (which.stride == 0 && which.size != 1)) {
        return false;
    }
    long const last = which.start + static_cast<long>(which.stride) * (which.size - 1);
    auto const is_member = [&](long pe) { return pe >= 0 && pe < size_of(parent); };
    return is_member(which.start) && is_member(last);
}

std::vector<int> ranks_of(const subset &which, const team &parent) {
    std::vector<int> ranks;
    for (int i = 0; i < which.size; ++i) {
        ranks.push_back(parent.world_pes[static_cast<std::size_t>(which.start + i * which.stride)]);
    }
    return ranks;
}

int number_in(const std::vector<int> &ranks, int rank) {
    auto const found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

shmem_team_config_t configured(const shmem_team_config_t *config, long mask) {
    shmem_team_config_t result{};
    if (config != nullptr && (mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {
        result.num_contexts = config->num_contexts;
    }
    return result;
}

/// Collective over the members. The new team of a member, SHMEM_TEAM_INVALID for others.
shmem_team_t create(const char *function, const subset &which, const team &parent,
                    const shmem_team_config_t &config) {
    auto created = std::make_unique<team>();
    created->world_pes = ranks_of(which, parent);
    created->own_pe = number_in(created->world_pes, g_state.rank);
    created->config = config;
    if (created->own_pe < 0) {
        return SHMEM_TEAM_INVALID;
    }
    check(function,
          ompx_group_create(&created->group, created->world_pes.data(), size_of(*created)));
    return handle_of(created.release());
}

/// By start, stride and size: the group that the members of an active set create together.
std::map<std::array<int, 3>, ompx_group_t> g_active_sets;

} // namespace

namespace diomp_shmem {

ompx_group_t active_set(const char *function, int start, int log_stride, int size) {
    require_ready(function);
    subset const which{start, log_stride >= 0 && log_stride < 31 ? 1 << log_stride : 0, size};
    if (!is_valid(which, g_state.world)) {
        fail(function, "the active set has PEs outside the world, or none");
    }
    if (which.size == g_state.num_ranks) {
        return ompx_group_world;
    }
    std::lock_guard const lock(g_state.mutex);
    auto const [found, is_new] =
        g_active_sets.try_emplace({which.start, which.stride, which.size}, OMPX_GROUP_NONE);
    if (is_new) {
        std::vector<int> const ranks = ranks_of(which, g_state.world);
        check(function, ompx_group_create(&found->second, ranks.data(), which.size));
    }
    return found->second;
}

void free_active_sets() {
    for (auto &[key, group] : g_active_sets) {
        check("shmem_finalize", ompx_group_free(&group));
    }
    g_active_sets.clear();
}

void free_team(team *which) {
    free_contexts_of(which);
    check("shmem_team_destroy", ompx_group_free(&which->group));
    delete which;
}

} // namespace diomp_shmem

extern "C" {

int shmem_team_my_pe(shmem_team_t handle) {
    require_ready(__func__);
    team *const members = team_of(handle);
    return members == nullptr ? -1 : members->own_pe;
}

int shmem_team_n_pes(shmem_team_t handle) {
    require_ready(__func__);
    team *const members = team_of(handle);
    return members == nullptr ? -1 : size_of(*members);
}

int shmem_team_get_config(shmem_team_t handle, long config_mask, shmem_team_config_t *config) {
    require_ready(__func__);
    team *const members = team_of(handle);
    if (members == nullptr) {
        return -1;
    }
    if (config != nullptr && (config_mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {
        config->num_contexts = members->config.num_contexts;
    }
    return 0;
}

int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team) {
    require_ready(__func__);
    team *const from = team_of(src_team);
    team *const to = team_of(dest_team);
    if (from == nullptr || to == nullptr || src_pe < 0 || src_pe >= size_of(*from)) {
        return -1;
    }
    return number_in(to->world_pes, from->world_pes[static_cast<std::size_t>(src_pe)]);
}

int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask,
                             shmem_team_t *new_team) {
    require_ready(__func__);
    *new_team = SHMEM_TEAM_INVALID;
    team *const parent = team_of(parent_team);
    subset const which{start, stride, size};
    if (parent == nullptr || !is_valid(which, *parent)) {
        return -1;
    }
    *new_team = create(__func__, which, *parent, configured(config, config_mask));
    return 0;
}

int shmem_team_split_2d(shmem_team_t parent_team, int xrange,
                        const shmem_team_config_t *xaxis_config, long xaxis_mask,
                        shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                        long yaxis_mask, shmem_team_t *yaxis_team) {
    require_ready(__func__);
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    team *const parent = team_of(parent_team);
    if (parent == nullptr || xrange < 1) {
        return -1;
    }
    int const num_pes = size_of(*parent);
    int const width = std::min(xrange, num_pes);
    int const column = parent->own_pe % width;
    int const row_start = parent->own_pe - column;
    subset const row{row_start, 1, std::min(width, num_pes - row_start)};
    subset const all_of_column{column, width, (num_pes - column + width - 1) / width};
    *xaxis_team = create(__func__, row, *parent, configured(xaxis_config, xaxis_mask));
    *yaxis_team = create(__func__, all_of_column, *parent, configured(yaxis_config, yaxis_mask));
    return 0;
}

void shmem_team_destroy(shmem_team_t handle) {
    require_ready(__func__);
    team *const which = team_of(handle);
    if (which == &g_state.world || which == &g_state.shared) {
        fail(__func__, "a predefined team cannot be destroyed");
    }
    if (which != nullptr) {
        free_team(which);
    }
}

} // extern "C"
