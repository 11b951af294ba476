// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/pairwise_layer.h"

#include "cart/cart.h"
#include "channels/channel_registry.h"
#include "runtime/job_connection.h"
#include "sync/lock.h"

namespace diomp::runtime {

pairwise_layer::pairwise_layer() = default;
pairwise_layer::~pairwise_layer() = default;

void pairwise_layer::create(job_connection &job, rma::transfers &transfers,
                            memory::address_space &space, memory::segment &own) {
    world_rank const self = job.job().rank;
    locks_ = std::make_unique<sync::locks>(job.engine(), job.calls(), self);
    channels_ = std::make_unique<channels::channel_registry>(
        channels::channel_context{job.engine(), transfers, space, own, self});
    carts_ = std::make_unique<cart::cart_registry>(*channels_);
}

int pairwise_layer::num_locks_held() const { return locks_->num_held(); }

} // namespace diomp::runtime
