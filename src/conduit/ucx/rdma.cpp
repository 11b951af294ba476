// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers by UCX's own puts and gets, where the network does them without the target. Declared in
// peer.h.
#include "conduit/ucx/peer.h"

#include <cstring>

namespace diomp::conduit::ucx {
namespace {

struct operation {
    channel *owner;
    completion *done; ///< nullptr: nobody waits for it alone
    bool is_flush = false;
    // An atomic one's:
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

void finish(operation *over, ucs_status_t code) {
    channel &owner = *over->owner;
    if (over->is_flush) {
        --owner.num_rdma_flushes;
    }
    --owner.num_in_flight;
    owner.target.num_bulk.fetch_sub(1, std::memory_order_relaxed);
    if (code != UCS_OK && !owner.target.is_broken.exchange(true)) {
        owner.owner.broken.push_back(&owner.target);
    }
    if (over->result != nullptr && code == UCS_OK) {
        std::memcpy(over->result, &over->reply, over->nbytes);
    }
    if (over->done != nullptr) {
        over->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    }
    delete over;
}

void finished(void *request, ucs_status_t code, void *user_data) {
    auto *const over = static_cast<operation *>(user_data);
    worker &owner = over->owner->owner;
    --owner.num_requests;
    finish(over, code);
    owner.owner.ucx().ucp_request_free(request);
}

/// Starts `call` with a callback that ends what it is for.
template <typename Call>
void start(const operation &what, Call &&call) {
    auto *const started = new operation(what);
    channel &at = *what.owner;
    if (what.done != nullptr) {
        what.done->begin();
    }
    ++at.num_in_flight;
    at.num_rdma_flushes += what.is_flush ? 1 : 0;
    at.target.num_bulk.fetch_add(1, std::memory_order_relaxed);
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

void channel::rdma_put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                       completion &done) {
    has_rdma_news = true;
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_put_nbx(endpoint, source, nbytes, remote_address, remote_key,
                                             &parameters);
    });
}

void channel::rdma_get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                       completion &done) {
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_get_nbx(endpoint, destination, nbytes, remote_address,
                                             remote_key, &parameters);
    });
}

void channel::rdma_atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                          completion &done) {
    bool const swaps = call.op == atomic_op::exchange || call.op == atomic_op::compare_exchange;
    bool const compares = call.op == atomic_op::compare_exchange;
    has_rdma_news = has_rdma_news || result == nullptr;
    operation what{this, result != nullptr ? &done : nullptr};
    // UCX wants what is compared as the operand, and what replaces it where the old value goes.
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
        return owner.owner.ucx().ucp_atomic_op_nbx(endpoint, name_of(call.op), &started.operand, 1,
                                                   remote_address, remote_key, &parameters);
    });
}

bool channel::rdma_flush(completion &done) {
    // With one under way, a new one is the simplest that waits for the same.
    if (!has_rdma_news && num_rdma_flushes == 0) {
        return false;
    }
    has_rdma_news = false;
    start({this, &done, true}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner.owner.ucx().ucp_ep_flush_nbx(endpoint, &parameters);
    });
    return true;
}

} // namespace diomp::conduit::ucx
