// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/remote_client.h"
#include "api/internal/state.h"
#include "diomp/process.h"
#include "messaging/engine.h"
#include "offload/remote/client.h"
#include "offload/remote/device_access.h"
#include "transport/conduit.h"

namespace {

using diomp::api::g_runtime;

/// Returns a number of the job's description, or a negative status.
int query(const char *function, int diomp::api::job_numbers::*which) {
    if (g_runtime.load(std::memory_order_acquire) == nullptr) [[unlikely]] {
        return diomp::api::fail(function, "", diomp::api::state_error());
    }
    return diomp::api::g_job.*which;
}

using diomp::api::job_numbers;

/// "" if the rank has no remote devices in the job.
std::string paths_to_devices(diomp::runtime::runtime &running, diomp::world_rank rank) {
    if (!running.connection().has_remote_devices()) {
        return {};
    }
    diomp::api::remote_client_guard const used;
    if (used.client() == nullptr || !used.client()->is_of_job()) {
        return {};
    }
    std::string const paths = diomp::offload::remote::describe_paths(*used.client(), rank);
    return paths.empty() ? paths : "; " + paths;
}

} // namespace

extern "C" {

int ompx_is_initialized(void) noexcept {
    return g_runtime.load(std::memory_order_acquire) != nullptr ? 1 : 0;
}

int ompx_rank_num(void) noexcept { return query("ompx_rank_num", &job_numbers::rank); }

int ompx_num_ranks(void) noexcept { return query("ompx_num_ranks", &job_numbers::size); }

int ompx_local_rank_num(void) noexcept {
    return query("ompx_local_rank_num", &job_numbers::local_rank);
}

int ompx_num_local_ranks(void) noexcept {
    return query("ompx_num_local_ranks", &job_numbers::num_local_ranks);
}

int ompx_get_rank_num(void) noexcept { return ompx_rank_num(); }

int ompx_get_num_ranks(void) noexcept { return ompx_num_ranks(); }

int ompx_get_local_rank_num(void) noexcept { return ompx_local_rank_num(); }

int ompx_get_num_local_ranks(void) noexcept { return ompx_num_local_ranks(); }

int ompx_path_info(int rank, char *text, std::size_t nbytes) noexcept {
    using namespace diomp;
    return api::call(
        "ompx_path_info", DIOMP_SITE,
        [&] { return fmt::format("rank={}, nbytes={}", rank, nbytes); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_rank(running, rank));
            DIOMP_TRY(api::check_pointer(text, "text"));
            DIOMP_TRY(api::check_size(nbytes));
            std::string path =
                running.connection().engine().transport().describe_path(world_rank{rank});
            path += paths_to_devices(running, world_rank{rank});
            if (nbytes > 0) {
                text[path.copy(text, nbytes - 1)] = '\0';
            }
            return {};
        });
}

const char *ompx_status_string(int status) noexcept {
    switch (status) {
    case OMPX_SUCCESS:
        return "success";
    case OMPX_ERR_ARG:
        return "invalid argument";
    case OMPX_ERR_RANK:
        return "rank out of range";
    case OMPX_ERR_ADDRESS:
        return "address outside the global address space";
    case OMPX_ERR_RANGE:
        return "range past the end of its segment or allocation";
    case OMPX_ERR_NOMEM:
        return "out of memory";
    case OMPX_ERR_MISMATCH:
        return "ranks disagree about a collective call";
    case OMPX_ERR_LOCK:
        return "lock held already, or not held";
    case OMPX_ERR_STATE:
        return "runtime not started, or finalized";
    case OMPX_ERR_TIMEOUT:
        return "timed out";
    case OMPX_ERR_PEER:
        return "a rank has died";
    case OMPX_ERR_SYSTEM:
        return "refused by the operating system";
    case OMPX_ERR_UNSUPPORTED:
        return "not supported here";
    case OMPX_ERR_BUSY:
        return "busy";
    default:
        return "unknown status";
    }
}

} // extern "C"
