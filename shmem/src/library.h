// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the functions of shmem.h share: state, errors, teams and contexts behind the handles, and
// the types of DiOMP.
#pragma once

#include "diomp.h"
#include "shmem/types.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

namespace diomp_shmem {

struct context;

/// A team. Its PEs are numbered from 0.
struct team {
    ompx_group_t group = ompx_group_world;
    int own_pe = 0;
    std::vector<int> world_pes; ///< [PE of the team]
    shmem_team_config_t config{};
};

/// A context other than the default one.
struct context {
    team *members = nullptr;
    ompx_context_t own = nullptr; ///< NULL: its operations belong to the default context
    std::atomic<bool> has_others{
        false}; ///< operations of the default context were started through it
    long options = 0;
};

/// A range of static data.
struct static_range {
    std::byte *base = nullptr;
    std::size_t nbytes = 0;

    [[nodiscard]] bool contains(const void *address) const {
        auto const *const byte = static_cast<const std::byte *>(address);
        return byte >= base && byte < base + nbytes;
    }
};

struct library_state {
    bool is_ready = false;
    int rank = -1;
    int num_ranks = 0;
    int num_starts = 0; ///< calls of shmem_init that shmem_finalize has not matched
    team world;
    team shared;
    std::vector<static_range> static_data;
    std::vector<context *> contexts; ///< of all teams; each ends with its team
    std::mutex mutex;                ///< over the list of contexts and the active sets
};
inline library_state g_state;

/// The bytes of nelems elements; if there are too many for a size_t, more than any memory has,
/// which every function of DiOMP refuses.
inline std::size_t bytes_of(std::size_t nelems, std::size_t element) {
    std::size_t nbytes = 0;
    return __builtin_mul_overflow(nelems, element, &nbytes) ? SIZE_MAX : nbytes;
}

/// Prints the text and ends the job.
[[noreturn]] void fail(const char *function, const char *text);
/// Ends the job after an error, which a function without a result cannot return.
inline void check(const char *function, int status) {
    if (status < 0) [[unlikely]] {
        fail(function, ompx_last_error());
    }
}
/// Ends the job if the library has not been started.
inline void require_ready(const char *function) {
    if (!g_state.is_ready) [[unlikely]] {
        fail(function, "called before shmem_init() or after shmem_finalize(): call it in between");
    }
}

/// nullptr for SHMEM_TEAM_INVALID.
inline team *team_of(shmem_team_t handle) {
    if (handle == SHMEM_TEAM_WORLD) {
        return &g_state.world;
    }
    return handle == SHMEM_TEAM_SHARED ? &g_state.shared : reinterpret_cast<team *>(handle);
}
inline shmem_team_t handle_of(team *which) {
    if (which == &g_state.world) {
        return SHMEM_TEAM_WORLD;
    }
    return which == &g_state.shared ? SHMEM_TEAM_SHARED : reinterpret_cast<shmem_team_t>(which);
}
inline int size_of(const team &which) { return static_cast<int>(which.world_pes.size()); }

/// Creates the group of an active set once, and returns it.
ompx_group_t active_set(const char *function, int start, int log_stride, int size);
void free_active_sets();
void free_team(team *which);
void free_context(context *which);
/// Frees the contexts of a team; nullptr: of all teams.
void free_contexts_of(const team *members);
/// Completes the operations of all contexts.
void complete_contexts();
/// Is the address static data that is symmetric?
bool is_static(const void *address);

/// Where an operation goes.
struct target {
    int rank = 0;
    context *through = nullptr; ///< nullptr: the default context
};
target find_target(const char *function, shmem_ctx_t ctx, int pe);
/// The target of an operation that the default context completes.
inline int default_target(const char *function, shmem_ctx_t ctx, int pe) {
    require_ready(function);
    if (ctx == SHMEM_CTX_DEFAULT) [[likely]] {
        return pe;
    }
    auto const found = find_target(function, ctx, pe);
    if (found.through != nullptr) {
        found.through->has_others.store(true, std::memory_order_relaxed);
    }
    return found.rank;
}

/// Errors of this thread are returned while the object exists: what is an error in DiOMP may be a
/// result in SHMEM.
class returned_errors {
public:
    returned_errors() : before_(ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD)) {}
    returned_errors(const returned_errors &) = delete;
    returned_errors &operator=(const returned_errors &) = delete;
    ~returned_errors() { ompx_set_errors(static_cast<ompx_errors_t>(before_), OMPX_SCOPE_THREAD); }

private:
    int before_;
};

template <typename T>
constexpr ompx_type_t integer_type() {
    constexpr ompx_type_t of_size = sizeof(T) == 1   ? OMPX_INT8
                                    : sizeof(T) == 2 ? OMPX_INT16
                                    : sizeof(T) == 4 ? OMPX_INT32
                                                     : OMPX_INT64;
    return std::is_signed_v<T> ? of_size : of_size + 1;
}
/// DiOMP's number of a type of C.
template <typename T>
constexpr ompx_type_t type_of() {
    if constexpr (std::is_integral_v<T>) {
        return integer_type<T>();
    } else if constexpr (std::is_same_v<T, float>) {
        return OMPX_FLOAT;
    } else if constexpr (std::is_same_v<T, double>) {
        return OMPX_DOUBLE;
    } else if constexpr (std::is_same_v<T, long double>) {
        return OMPX_LONG_DOUBLE;
    } else {
        return sizeof(T) == 2 * sizeof(float) ? OMPX_FLOAT_COMPLEX : OMPX_DOUBLE_COMPLEX;
    }
}
static_assert(OMPX_UINT8 == OMPX_INT8 + 1 && OMPX_UINT64 == OMPX_INT64 + 1);
static_assert(SHMEM_CMP_EQ == OMPX_CMP_EQ && SHMEM_CMP_LE == OMPX_CMP_LE);
static_assert(SHMEM_SIGNAL_SET == OMPX_SIGNAL_SET && SHMEM_SIGNAL_ADD == OMPX_SIGNAL_ADD);

} // namespace diomp_shmem
