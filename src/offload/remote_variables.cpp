// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/remote_variables.h"

#include "messaging/call.h"
#include "offload/alloc_directory.h"
#include "offload/internal/own_variables.h"

#include <fmt/core.h>

#include <mutex>

namespace diomp::offload {

using outcome = variable_reply::outcome;

namespace {

error error_of(world_rank owner, int device, const variable &of, const variable_reply &reply) {
    switch (reply.how) {
    case outcome::no_device:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no device {} with a copy of {}", owner.value(), device,
                            of.name),
                "pass a device number that the other rank has"};
    case outcome::no_copy:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no copy of {} on device {} that other ranks can access",
                            owner.value(), of.name, reply.device),
                fmt::format("see the messages of rank {}", owner.value())};
    case outcome::closed:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} no longer has a copy of {}: its program has ended",
                            owner.value(), of.name),
                "call a barrier after the last transfer"};
    case outcome::no_variable:
    case outcome::found:
        break;
    }
    return {OMPX_ERR_ADDRESS,
            fmt::format("rank {} has no declare target variable {} ({})", owner.value(), of.name,
                        describe(of.what)),
            "run the same program on all ranks, and load its libraries on all of them"};
}

} // namespace

result<remote_copy> remote_variables::locate_copy(world_rank owner, int device,
                                                  const variable &of) {
    key const wanted{owner.value(), device, of.what.module, of.what.offset};
    {
        std::shared_lock const guard(mutex_);
        if (auto const known = cache_.find(wanted); known != cache_.end()) {
            return known->second;
        }
    }
    auto replied = calls_.call<variable_reply>(
        owner, request_handler_,
        variable_request{
            {}, of.what, hash_of(of.name.c_str()), device, directory_.device_index_of(device)},
        [&] {
            return fmt::format("waiting for rank {} to locate {} on device {}", owner.value(),
                               of.name, device);
        });
    DIOMP_TRY(replied);
    variable_reply const &reply = replied.value();
    if (reply.how != outcome::found) {
        return error_of(owner, device, of, reply);
    }
    if (reply.nbytes != of.nbytes) {
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {}'s variable {} has {} bytes, this rank's has {}",
                                 owner.value(), of.name, reply.nbytes, of.nbytes),
                     "run the same program on all ranks");
    }
    remote_copy const found{reply.address, reply.device, reply.on_accelerator != 0,
                            reply.is_constant != 0};
    std::lock_guard const guard(mutex_);
    cache_.insert_or_assign(wanted, found);
    return found;
}

} // namespace diomp::offload
