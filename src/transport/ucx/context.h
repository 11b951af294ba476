// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The UCX context of this process, and the exchange of addresses with other ranks.
#pragma once

#include "transport/arena.h"
#include "transport/common/device_context.h"
#include "transport/options.h"
#include "transport/ucx/library.h"
#include "transport/ucx/net_access.h"
#include "transport/ucx/packet_prover.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace diomp::transport::ucx {

/// The address information that a rank publishes.
struct address_blob {
    std::string host;
    std::vector<std::byte> address;    ///< of its receiving worker
    std::vector<std::byte> remote_key; ///< of its segment; empty if that is not registered
};

class context {
public:
    static result<std::unique_ptr<context>> create(launch::launcher &launcher, const arena &arena,
                                                   const conduit_options &options);
    ~context();
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    /// Limits the connections to a new worker's ports to hosts of the job; `before`: the sockets
    /// that listened before the worker was created. What is impossible is logged.
    void limit_sources(ucp_worker_h worker, std::span<const int> before) const;
    /// Publishes this rank's address information. An error if ranks differ in the protocol of
    /// atomic operations, or cannot provide the requested one. Collective.
    status publish(ucp_worker_h worker);
    /// Reads what a peer has published. Calls the launcher, which may block. Any thread.
    result<address_blob> fetch(world_rank peer);

    [[nodiscard]] const library &ucx() const { return *library_; }
    [[nodiscard]] ucp_context_h handle() const { return handle_; }
    [[nodiscard]] const conduit_options &options() const { return options_; }
    [[nodiscard]] world_rank self() const { return launcher_.info().rank; }
    [[nodiscard]] int num_ranks() const { return launcher_.info().size; }
    [[nodiscard]] const packet_prover &prover() const { return *prover_; }

    /// See device_transfers::supports_memory_kind.
    [[nodiscard]] bool supports_memory_kind(memory_kind kind) const {
        return kind == memory_kind::host ||
               device_types_[static_cast<std::size_t>(kind)].has_value();
    }
    /// UCX's constant for a kind of memory that it supports.
    [[nodiscard]] ucs_memory_type_t type_of(memory_kind kind) const {
        return device_types_[static_cast<std::size_t>(kind)].value_or(UCS_MEMORY_TYPE_HOST);
    }
    [[nodiscard]] device_context &device_ctx() { return device_ctx_; }

private:
    /// Shares the job's secret and the hosts' addresses. Collective.
    status share_identity();
    status start(ucp_config_t *config);
    /// Whether UCX executes puts, gets and atomics of other processes, which it does for all that
    /// connect: only if ranks may use them.
    [[nodiscard]] bool uses_rma() const;
    /// Registers this rank's segment for RMA if possible.
    void register_segment(const arena &arena);
    void query_device_memory();
    /// Describes the protocol of atomics; equal texts on two ranks mean the same protocol.
    [[nodiscard]] std::string atomics_protocol() const;
    status check_atomics();

    context(launch::launcher &launcher, const conduit_options &options)
        : launcher_(launcher), options_(options) {}

    launch::launcher &launcher_;
    std::mutex launcher_mutex_; ///< a launcher allows one thread at a time
    conduit_options options_;
    const library *library_ = nullptr;
    std::optional<packet_prover> prover_;
    std::optional<net_access> access_; ///< empty: not limited
    ucp_context_h handle_ = nullptr;
    ucp_mem_h segment_ = nullptr;
    std::array<std::optional<ucs_memory_type_t>, 3> device_types_; ///< [memory_kind]
    device_context device_ctx_;
};

} // namespace diomp::transport::ucx
