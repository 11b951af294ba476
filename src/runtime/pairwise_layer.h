// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What works between single ranks: locks, channels, and grids, whose neighbours have channels.
#pragma once

#include "base/ids.h"
#include "runtime/internal/modules.h"

#include <memory>

namespace diomp::runtime {

class job_connection;

/// Any thread, except create.
class pairwise_layer {
public:
    pairwise_layer();
    ~pairwise_layer();

    /// Call before engine.start().
    void create(job_connection &job, rma::transfers &transfers, memory::address_space &space,
                memory::segment &own);

    /// Locks that threads of this rank hold.
    [[nodiscard]] int num_locks_held() const;
    [[nodiscard]] sync::locks &locks() { return *locks_; }
    [[nodiscard]] channels::channel_registry &channels() { return *channels_; }
    [[nodiscard]] cart::cart_registry &carts() { return *carts_; }

private:
    std::unique_ptr<sync::locks> locks_;
    std::unique_ptr<channels::channel_registry> channels_;
    std::unique_ptr<cart::cart_registry> carts_;
};

} // namespace diomp::runtime
