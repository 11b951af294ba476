// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// UCX's put, get, atomics and flush to one peer, where the network has native ones.
#pragma once

#include "transport/ucx/worker.h"

#include <span>

namespace diomp::transport::ucx {

/// Under the worker's lock. `done` as in rma_transport.h.
class endpoint_rdma {
public:
    explicit endpoint_rdma(endpoint &owner) : owner_(owner) {}

    /// Unpacks the key of the peer's segment; without it, no operation is possible.
    ucs_status_t unpack_key(std::span<const std::byte> packed);
    void destroy_key();
    [[nodiscard]] bool has_key() const { return remote_key_ != nullptr; }
    /// Transfers use put and get from now on.
    void use_for_transfers() { is_used_for_transfers_ = true; }
    [[nodiscard]] bool is_used_for_transfers() const { return is_used_for_transfers_; }

    void put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
             completion &done);
    void get(std::uint64_t remote_address, void *destination, std::size_t nbytes, completion &done);
    void atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                completion &done);
    /// False if there is nothing to flush.
    bool flush(completion &done);

private:
    struct operation;
    static void finish(operation *over, ucs_status_t code);
    static void finished(void *request, ucs_status_t code, void *user_data);
    template <typename Call>
    static void start(const operation &what, Call &&call);

    endpoint &owner_;
    ucp_rkey_h remote_key_ = nullptr;
    bool is_used_for_transfers_ = false;
    bool has_unflushed_ = false; ///< operations that no flush covers
    int num_flushes_ = 0;        ///< in flight
};

} // namespace diomp::transport::ucx
