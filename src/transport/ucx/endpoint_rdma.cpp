// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/endpoint_rdma.h"

#include "transport/ucx/peer.h"

#include <cstring>

namespace diomp::transport::ucx {

struct endpoint_rdma::operation {
    endpoint_rdma *owner;
    completion *done; ///< nullptr: only a flush waits for it
    bool is_flush = false;
    // For atomic operations:
    std::uint64_t operand = 0;
    std::uint64_t reply = 0;
    void *result = nullptr;
    std::size_t nbytes = 0;
};

namespace {

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

} // namespace

ucs_status_t endpoint_rdma::unpack_key(std::span<const std::byte> packed) {
    ucs_status_t const code =
        owner_.owner.owner.ucx().ucp_ep_rkey_unpack(owner_.ep, packed.data(), &remote_key_);
    if (code != UCS_OK) {
        remote_key_ = nullptr;
    }
    return code;
}

void endpoint_rdma::destroy_key() {
    if (remote_key_ != nullptr) {
        owner_.owner.owner.ucx().ucp_rkey_destroy(remote_key_);
        remote_key_ = nullptr;
    }
}

void endpoint_rdma::finish(operation *over, ucs_status_t code) {
    endpoint &at = over->owner->owner_;
    if (over->is_flush) {
        --over->owner->num_flushes_;
    }
    --at.num_in_flight;
    at.target.num_large_transfers.fetch_sub(1, std::memory_order_relaxed);
    if (code != UCS_OK) {
        at.owner.mark_broken(at.target);
    }
    if (over->result != nullptr && code == UCS_OK) {
        std::memcpy(over->result, &over->reply, over->nbytes);
    }
    if (over->done != nullptr) {
        over->done->end(code == UCS_OK ? 0 : OMPX_ERR_PEER);
    }
    delete over;
}

void endpoint_rdma::finished(void *request, ucs_status_t code, void *user_data) {
    auto *const over = static_cast<operation *>(user_data);
    worker &owner = over->owner->owner_.owner;
    --owner.num_requests;
    finish(over, code);
    owner.owner.ucx().ucp_request_free(request);
}

/// Starts `call` with a callback that completes `what`.
template <typename Call>
void endpoint_rdma::start(const operation &what, Call &&call) {
    auto *const started = new operation(what);
    endpoint &at = what.owner->owner_;
    if (what.done != nullptr) {
        what.done->begin();
    }
    ++at.num_in_flight;
    what.owner->num_flushes_ += what.is_flush ? 1 : 0;
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

void endpoint_rdma::put(std::uint64_t remote_address, const void *source, std::size_t nbytes,
                        completion &done) {
    has_unflushed_ = true;
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner_.owner.owner.ucx().ucp_put_nbx(owner_.ep, source, nbytes, remote_address,
                                                    remote_key_, &parameters);
    });
}

void endpoint_rdma::get(std::uint64_t remote_address, void *destination, std::size_t nbytes,
                        completion &done) {
    start({this, &done}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner_.owner.owner.ucx().ucp_get_nbx(owner_.ep, destination, nbytes, remote_address,
                                                    remote_key_, &parameters);
    });
}

void endpoint_rdma::atomic(std::uint64_t remote_address, const atomic_call &call, void *result,
                           completion &done) {
    bool const swaps = call.op == atomic_op::exchange || call.op == atomic_op::compare_exchange;
    bool const compares = call.op == atomic_op::compare_exchange;
    has_unflushed_ = has_unflushed_ || result == nullptr;
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
        return owner_.owner.owner.ucx().ucp_atomic_op_nbx(owner_.ep, name_of(call.op),
                                                          &started.operand, 1, remote_address,
                                                          remote_key_, &parameters);
    });
}

bool endpoint_rdma::flush(completion &done) {
    // If a flush is in flight, a second one is the simplest way to wait for the same puts.
    if (!has_unflushed_ && num_flushes_ == 0) {
        return false;
    }
    has_unflushed_ = false;
    start({this, &done, true}, [&](const ucp_request_param_t &parameters, operation & /*started*/) {
        return owner_.owner.owner.ucx().ucp_ep_flush_nbx(owner_.ep, &parameters);
    });
    return true;
}

} // namespace diomp::transport::ucx
