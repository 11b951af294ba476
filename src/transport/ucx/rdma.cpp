// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers by UCX's put and get, where the network has native ones. Declared in peer.h.
#include "transport/ucx/peer.h"

#include <cstring>

namespace diomp::transport::ucx {
namespace {

struct operation {
    endpoint *owner;
    completion *done; ///< nullptr: only a flush waits for it
    bool is_flush = false;
    // For atomic operations:
    std::uint64_t operand = 0;
    std::uint64_t reply = 0;
    void *result = nullptr;
    std::size_t nbytes = 0;
};

ucp_atomic_op_t name_of(atomic_op op) {
    switch (op) {
    case atomic_op::add:
        return UCP_ATOMIC_OP_ADD;
    case atomic_op::exchange:
        return UCP_ATOMIC_OP_SWAP;
    case atomic_op::compare_exchange:
        break;
    }
    return UCP_ATOMIC_OP_CSWAP;
}

void finish(operation *finished_operation, ucs_status_t code) {
    endpoint &owner = *finished_operation->owner;
    if (finished_operation->is_flush) {
        --owner.num_rdma_flushes;
    }
    --owner.num_in_flight;
    owner.target.num_large_transfers.fetch_sub(1, std::memory_order_relaxed);
    if (code != UCS_OK && !owner.target.is_broken.exchange(true)) {
        owner.owner.broken.push_back(&owner.target);
    }
    if (finished_operation->result != nullptr && code == UCS_OK) {
        std::memcpy(finished_operation->result, &finished_operation->reply,
                    finished_operation->nbytes);
    }
    if (finished_operation->done != nullptr) {
        finished_operation->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    }
    delete finished_operation;
}

void finished(void *request, ucs_status_t code, void *user_data) {
    auto *const finished_operation = static_cast<operation *>(user_data);
    worker &owner = finished_operation->owner->owner;
    --owner.num_requests;
    finish(finished_operation, code);
    owner.owner.ucx().ucp_request_free(request);
}

/// Starts `call` with a callback that completes `what`.
template <typename Call>
void start(const operation &what, Call &&call) {
    auto *const started = new operation(what);
    endpoint &at = *what.owner;
    if (what.done != nullptr) {
        what.done->begin();
    }
    ++at.num_in_flight;
    at.num_rdma_flushes += what.is_flush ? 1 : 0;
    at.target.num_large_transfers.fetch_add(1, std::memory_order_relaxed);
    if (at.target.is_broken.load(std::memory_order_relaxed)) {
        finish(started, UCS_ERR_CONNECTION_RESET);
        return;
    }
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &finished;
    parameters.user_data = started;
    ucs_status_ptr_t const request = call(parameters, *started);
    if (UCS_PTR_IS_PTR(request)) {
        ++at.owner.num_requests;
    } else {
        finish(started, UCS_PTR_STATUS(request));
    }
}

} // namespace

void endpoint::rdma_put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                        completion &done) {
    has_unflushed_rdma = true;
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_put_nbx(ep, source, nbytes, remote_address, remote_key,
                                             &parameters);
    });
}

void endpoint::rdma_get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                        completion &done) {
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_get_nbx(ep, destination, nbytes, remote_address, remote_key,
                                             &parameters);
    });
}

void endpoint::rdma_atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                           completion &done) {
    bool const swaps = call.op == atomic_op::exchange || call.op == atomic_op::compare_exchange;
    bool const compares = call.op == atomic_op::compare_exchange;
    has_unflushed_rdma = has_unflushed_rdma || result == nullptr;
    operation what{this, result != nullptr ? &done : nullptr};
    // For CSWAP, UCX takes the expected value as the operand, and the new value in the reply
    // buffer.
    what.operand = compares ? call.expected : call.operand;
    what.reply = compares ? call.operand : 0;
    what.result = result;
    what.nbytes = call.nbytes;
    start(what, [&](ucp_request_param_t parameters, operation &started) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        parameters.datatype = ucp_dt_make_contig(call.nbytes);
        if (swaps || result != nullptr) {
            parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            parameters.reply_buffer = &started.reply;
        }
        return owner.owner.ucx().ucp_atomic_op_nbx(ep, name_of(call.op), &started.operand, 1,
                                                   remote_address, remote_key, &parameters);
    });
}

bool endpoint::rdma_flush(completion &done) {
    // If a flush is in flight, a second one is the simplest way to wait for the same puts.
    if (!has_unflushed_rdma && num_rdma_flushes == 0) {
        return false;
    }
    has_unflushed_rdma = false;
    start({this, &done, true}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_ep_flush_nbx(ep, &parameters);
    });
    return true;
}

} // namespace diomp::transport::ucx
