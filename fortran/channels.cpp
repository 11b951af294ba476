// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Channels and the exchange between neighbours of a grid, whose data are descriptors.
#include "array.h"
#include "caller.h"
#include "contiguous_buffer.h"
#include "diomp/binding.hpp"

namespace diomp::fortran {
namespace {

using send_call = int (*)(ompx_channel_t, const void *);

int send(const char *function, ompx_channel_t channel, const array &given, send_call call) {
    call_site const site(function, given, given);
    if (int const status = check_end(site, given, "data"); status != OMPX_SUCCESS) {
        return status;
    }
    std::size_t nbytes = 0;
    if (int const status = ompx_channel_nbytes(channel, &nbytes); status != OMPX_SUCCESS) {
        return status;
    }
    if (nbytes != given.nbytes()) {
        return site.fail(OMPX_ERR_MISMATCH, "data is not as large as a message of the channel",
                         "pass what the channel was created with");
    }
    contiguous_buffer data;
    int const status = data.load(site, given);
    return status == OMPX_SUCCESS ? call(channel, data.data()) : status;
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_channel_create(int partner, int tag, int end, CFI_cdesc_t *message, int depth,
                                 ompx_channel_t *channel) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const given(message);
    int const status =
        check_end(call_site("ompx_channel_create", given, given, partner), given, "message");
    return status == OMPX_SUCCESS
               ? ompx_channel_create(partner, tag, static_cast<ompx_channel_end_t>(end),
                                     given.nbytes(), depth, channel)
               : status;
}

int diomp_fortran_channel_send(ompx_channel_t channel, CFI_cdesc_t *data) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return send("ompx_channel_send", channel, array(data), ompx_channel_send);
}

int diomp_fortran_channel_try_send(ompx_channel_t channel, CFI_cdesc_t *data) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return send("ompx_channel_try_send", channel, array(data), ompx_channel_try_send);
}

// Called by procedures of the module.

int diomp_fortran_channel_wait_any(const ompx_channel_t *channels, std::size_t count,
                                   std::size_t *index) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    return ompx_channel_wait_any(channels, count, index);
}

int diomp_fortran_channel_test_any(const ompx_channel_t *channels, std::size_t count,
                                   std::size_t *index) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    return ompx_channel_test_any(channels, count, index);
}

int diomp_fortran_cart_exchange(ompx_cart_t cart, CFI_cdesc_t *from, CFI_cdesc_t *to) {
    caller const here(DIOMP_FORTRAN_CALLER);
    array const send(from);
    array const receive(to);
    call_site const site("ompx_cart_exchange", receive, send);
    if (int const status = check_end(site, send, "send"); status != OMPX_SUCCESS) {
        return status;
    }
    if (int const status = check_end(site, receive, "receive"); status != OMPX_SUCCESS) {
        return status;
    }
    int const num_dims = ompx_cart_num_dims(cart);
    if (num_dims < 0) {
        return num_dims;
    }
    std::size_t const num_neighbours = 2 * static_cast<std::size_t>(num_dims);
    if (send.nbytes() != receive.nbytes() || send.nbytes() % num_neighbours != 0) {
        return site.fail(OMPX_ERR_MISMATCH, "send and receive do not hold a block per neighbour",
                         "pass arrays of one size with the neighbours as last dimension");
    }
    contiguous_buffer source;
    contiguous_buffer target;
    int status = source.load(site, send);
    if (status == OMPX_SUCCESS) {
        status = target.load(site, receive);
    }
    if (status == OMPX_SUCCESS) {
        status =
            ompx_cart_exchange(cart, source.data(), target.data(), send.nbytes() / num_neighbours);
    }
    if (status == OMPX_SUCCESS) {
        target.store_back(receive);
    }
    return status;
}

} // extern "C"
