// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/context.h"

#include "base/hex.h"
#include "base/log.h"
#include "transport/common/job_secret.h"
#include "transport/registration.h"
#include "transport/ucx/listener_filter.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace diomp::transport::ucx {
namespace {

constexpr const char *address_key = "ucx";
constexpr const char *secret_key = "ucx.secret";   ///< of rank 0
constexpr const char *atomics_key = "ucx.atomics"; ///< of rank 0

/// UCX's settings that differ from its defaults, unless the user has set them.
struct tuned_setting {
    const char *name;
    const char *value;
};
constexpr tuned_setting tuned[] = {
    // 8 KiB segments make a large transfer over TCP five times as slow.
    // One chunk and its headers fit.
    {"UCX_TCP_TX_SEG_SIZE", "264k"},
    {"UCX_TCP_RX_SEG_SIZE", "264k"},
    // Chunks are sent without a copy: a tenth faster than through a buffer of UCX.
    {"UCX_ZCOPY_THRESH", "16k"},
};

} // namespace

result<std::unique_ptr<context>> context::create(launch::launcher &launcher, const arena &arena,
                                                 const conduit_options &options) {
    auto loaded = load_library();
    DIOMP_TRY(loaded);
    library const &ucx = *loaded.value();
    std::unique_ptr<context> made(new context(launcher, options));
    made->library_ = &ucx;

    DIOMP_TRY(made->share_identity());
    // Set in the environment: UCX 1.13 warns of transport settings given to ucp_config_modify.
    for (tuned_setting const &setting : tuned) {
        ::setenv(setting.name, setting.value, 0);
    }
    ucp_config_t *config = nullptr;
    if (ucs_status_t const code = ucx.ucp_config_read(nullptr, nullptr, &config); code != UCS_OK) {
        return ucx_error(ucx, "reading UCX's settings", code);
    }
    status started = made->start(config);
    ucx.ucp_config_release(config);
    DIOMP_TRY(started);
    made->register_segment(arena);
    made->query_device_memory();
    return made;
}

status context::share_identity() {
    DIOMP_TRY(publish_secret(launcher_, secret_key));
    if (options_.ucx.limits_access) {
        auto access = net_access::create(launcher_);
        DIOMP_TRY(access);
        access_ = access.take();
    }
    // net_access shares nothing within one machine.
    DIOMP_TRY(launcher_.fence());
    auto secret = fetch_secret(launcher_, secret_key);
    DIOMP_TRY(secret);
    prover_.emplace(secret.take());
    return {};
}

bool context::uses_rma() const {
    return options_.native_atomics || options_.network_rma == "rdma" ||
           (options_.network_rma == "auto" &&
            (has_rdma_adapter() || launcher_.info().is_on_one_machine()));
}

status context::start(ucp_config_t *config) {
    if (access_ && !access_->devices().empty() && std::getenv("UCX_NET_DEVICES") == nullptr) {
        log(log_level::info, "UCX uses the network devices {}", access_->devices());
        ucx().ucp_config_modify(config, "NET_DEVICES", access_->devices().c_str());
    }
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                            UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME;
    parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    if (uses_rma()) {
        parameters.features |= UCP_FEATURE_RMA;
    }
    if (options_.native_atomics) {
        parameters.features |= UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    }
    parameters.mt_workers_shared = 1;
    parameters.estimated_num_eps = static_cast<std::size_t>(launcher_.info().size);
    parameters.name = "diomp";
    if (ucs_status_t const code =
            ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &handle_);
        code != UCS_OK) {
        handle_ = nullptr;
        return ucx_error(ucx(), "starting UCX", code,
                         "check UCX_TLS and UCX_NET_DEVICES; DIOMP_LOG=info shows UCX's messages");
    }
    return {};
}

void context::limit_sources(ucp_worker_h worker, std::span<const int> before) const {
    ucp_address_t *blob = nullptr;
    std::size_t nbytes = 0;
    if (!access_ || ucx().ucp_worker_get_address(worker, &blob, &nbytes) != UCS_OK) {
        return;
    }
    std::span const bytes{reinterpret_cast<const std::byte *>(blob), nbytes};
    for (int const each : listening_sockets()) {
        bool const is_known = std::ranges::find(before, each) != before.end();
        if (is_known || !is_port_in(each, bytes)) {
            continue; // a socket of another library
        }
        if (status const limited = accept_only(each, access_->sources()); !limited) {
            log(log_level::warn, "ports of UCX accept connections from every host: {}",
                limited.failure().message());
        }
    }
    ucx().ucp_worker_release_address(worker, blob);
}

void context::query_device_memory() {
    if (options_.device_memory == "off") {
        return;
    }
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    std::uint64_t types = 0;
    if (ucx().ucp_context_query(handle_, &attributes) == UCS_OK) {
        types = attributes.memory_types;
    }
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    ucx().ucp_get_version(&major, &minor, &release);
    // Older versions fail in threads whose current device differs from the memory's device.
    bool const is_new_enough = major > 1 || minor >= 18;
    for (auto const &[kind, type] : {std::pair(memory_kind::cuda, UCS_MEMORY_TYPE_CUDA),
                                     std::pair(memory_kind::hip, UCS_MEMORY_TYPE_ROCM)}) {
        bool const is_known = (types >> static_cast<unsigned>(type) & 1) != 0;
        auto &known = device_types_[static_cast<std::size_t>(kind)];
        if (options_.device_memory == "on") {
            known = is_known ? type : UCS_MEMORY_TYPE_HOST;
        } else if (is_known && is_new_enough) {
            known = type;
        }
        if (known) {
            log(log_level::info, "UCX accesses memory of {} devices directly",
                kind == memory_kind::cuda ? "CUDA" : "HIP");
        }
    }
}

void context::register_segment(const arena &arena) {
    if (!uses_rma()) {
        return;
    }
    std::size_t const wanted = bytes_to_register(arena, launcher_.info());
    if (wanted == 0) {
        return;
    }
    ucp_mem_map_params_t parameters{};
    parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    parameters.address = arena.slot(self());
    parameters.length = wanted;
    parameters.flags = UCP_MEM_MAP_NONBLOCK;
    if (ucs_status_t const code = ucx().ucp_mem_map(handle_, &parameters, &segment_);
        code != UCS_OK) {
        segment_ = nullptr;
        log(log_level::info,
            "the segment cannot be registered with UCX ({}): transfers are sent as "
            "messages",
            ucx().ucs_status_string(code));
    }
}

context::~context() {
    if (segment_ != nullptr) {
        ucx().ucp_mem_unmap(handle_, segment_);
    }
    if (handle_ != nullptr) {
        ucx().ucp_cleanup(handle_);
    }
}

status context::publish(ucp_worker_h worker) {
    ucp_address_t *address = nullptr;
    std::size_t nbytes = 0;
    if (ucs_status_t const code = ucx().ucp_worker_get_address(worker, &address, &nbytes);
        code != UCS_OK) {
        return ucx_error(ucx(), "reading the UCX address of this rank", code);
    }
    std::string text = launcher_.info().host + " " +
                       to_hex({reinterpret_cast<const std::byte *>(address), nbytes});
    ucx().ucp_worker_release_address(worker, address);
    void *key = nullptr;
    if (segment_ != nullptr && ucx().ucp_rkey_pack(handle_, segment_, &key, &nbytes) == UCS_OK) {
        text += " " + to_hex({static_cast<const std::byte *>(key), nbytes});
        ucx().ucp_rkey_buffer_release(key);
    }
    DIOMP_TRY(launcher_.put(address_key, text));
    if (self() == world_rank{0}) {
        DIOMP_TRY(launcher_.put(atomics_key, atomics_protocol()));
    }
    DIOMP_TRY(launcher_.fence());
    return check_atomics();
}

std::string context::atomics_protocol() const {
    if (!options_.native_atomics) {
        return "messages";
    }
    char const *const mode = std::getenv("UCX_ATOMIC_MODE");
    return std::string("native, ") + (has_rdma_adapter() ? "with" : "without") + " an adapter" +
           (mode != nullptr ? std::string(", UCX_ATOMIC_MODE=") + mode : "");
}

status context::check_atomics() {
    // UCX uses the adapter if there is one, otherwise the processors. Both together would not be
    // atomic on the same word.
    auto first = launcher_.get(world_rank{0}, atomics_key);
    DIOMP_TRY(first);
    if (std::string const own = atomics_protocol(); first.value() != own) {
        return error(
            OMPX_ERR_ARG,
            "this rank performs atomic operations by '" + own + "', rank 0 by '" + first.value() +
                "'",
            "set DIOMP_NETWORK_ATOMICS and UCX_ATOMIC_MODE alike on all ranks; native atomics "
            "need an RDMA adapter on all nodes or on none");
    }
    if (options_.native_atomics && segment_ == nullptr) {
        return error(
            OMPX_ERR_UNSUPPORTED,
            "this rank's segment cannot be registered with UCX, which its atomic "
            "operations need",
            "set DIOMP_SEGMENT_SIZE and DIOMP_DEVICE_SEGMENT_SIZE so that the node's memory holds "
            "both segments of all its ranks twice, or DIOMP_NETWORK_ATOMICS=messages");
    }
    return {};
}

result<address_blob> context::fetch(world_rank peer) {
    std::lock_guard const guard(launcher_mutex_);
    auto text = launcher_.get(peer, address_key);
    DIOMP_TRY(text);
    std::istringstream words(text.value());
    std::string host;
    std::string address;
    std::string key;
    words >> host >> address >> key;
    address_blob blob{host, from_hex(address), from_hex(key)};
    if (blob.address.empty()) {
        return error(OMPX_ERR_SYSTEM,
                     "rank " + std::to_string(peer.value()) + " published no UCX address");
    }
    return blob;
}

} // namespace diomp::transport::ucx
