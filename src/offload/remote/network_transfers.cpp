// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/network_transfers.h"

#include "offload/remote/client.h"
#include "offload/remote/session_control.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace diomp::offload::remote {

using direction = queue_recorder::direction;
using carrier = queue_recorder::carrier;

status network_transfers::put(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (owner_.slots().has(device_.rank())) {
        auto const begin = recorder_.now();
        std::memcpy(reinterpret_cast<void *>(address), source, nbytes);
        recorder_.moved(direction::to_device, carrier::memory, nbytes, begin);
        return owner_.slots().check_present(device_.rank());
    }
    if (!puts_) {
        puts_ = std::make_shared<transport::completion>();
    }
    has_unordered_puts_ = true;
    recorder_.started(direction::to_device, carrier::network, nbytes);
    return owner_.ranks().conduit().rma()->put(device_.rank(), address, source, nbytes, *puts_);
}

void network_transfers::add_get(void *destination, std::uint64_t address, std::size_t nbytes,
                                std::uint64_t batch) {
    gets_.push_back({destination, address, nbytes, batch});
}

result<std::uint64_t> network_transfers::allocate_stage(std::size_t nbytes) {
    auto stage = device_.slot().allocate(nbytes);
    if (stage) {
        stages_.push_back(stage.value());
    }
    return stage;
}

status network_transfers::flush_puts() {
    return owner_.ranks().conduit().rma()->flush(device_.rank(), *puts_);
}

status network_transfers::check_puts() {
    if (puts_ && puts_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, device_.session().has_failed()
                                        ? device_.session().failure()
                                        : fmt::format("a transfer to {} failed", device_.label()));
    }
    recorder_.finished_puts();
    return {};
}

result<bool> network_transfers::advance_gets() {
    if (owner_.slots().has(device_.rank())) {
        for (get const &each : std::exchange(gets_, {})) {
            auto const begin = recorder_.now();
            std::memcpy(each.destination, reinterpret_cast<const void *>(each.address),
                        each.nbytes);
            recorder_.moved(direction::from_device, carrier::memory, each.nbytes, begin);
            DIOMP_TRY(owner_.slots().check_present(device_.rank()));
        }
        return true;
    }
    if (!gets_completion_ && !gets_.empty()) {
        gets_completion_ = std::make_shared<transport::completion>();
        for (get const &each : gets_) {
            recorder_.started(direction::from_device, carrier::network, each.nbytes);
            DIOMP_TRY(owner_.ranks().conduit().rma()->get(
                device_.rank(), each.address, each.destination, each.nbytes, *gets_completion_));
        }
    }
    if (!gets_completion_) {
        return true;
    }
    if (!gets_completion_->is_done()) {
        return false;
    }
    if (gets_completion_->failure.load(std::memory_order_relaxed) != 0) {
        return error(OMPX_ERR_PEER, fmt::format("a transfer from {} failed", device_.label()));
    }
    return true;
}

void network_transfers::reset() {
    gets_.clear();
    for (std::uint64_t const stage : stages_) {
        device_.slot().release(stage);
    }
    stages_.clear();
    has_unordered_puts_ = false;
    for (auto *each : {&puts_, &gets_completion_}) {
        if (*each && !(*each)->is_done()) {
            abandoned_.push_back(*each);
        }
        each->reset();
    }
}

} // namespace diomp::offload::remote
