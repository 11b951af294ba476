// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/started_transfers.h"

#include "offload/remote/client.h"
#include "offload/remote/session_control.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <utility>

namespace diomp::offload::remote {
namespace {

error copy_of(const error &of) { return {of.code(), of.message(), of.remedy()}; }

/// The only batch of a copy: it is ordered after the deferred work of the device.
std::string encode_copy(remote_device &own, std::uint64_t number, operation op, world_rank other,
                        std::uint64_t destination, std::uint64_t source, std::size_t nbytes) {
    packet_writer message;
    message.number(started_queue);
    message.number(number);
    for (event const &each : own.deferred().pending()) {
        append_operation(message, operation::wait);
        message.number(each.number);
        message.number(each.batch);
    }
    append_operation(message, op);
    message.number(static_cast<std::uint32_t>(other.value()));
    message.number(destination);
    message.number(source);
    message.number(static_cast<std::uint64_t>(nbytes));
    return message.take();
}

} // namespace

status started_transfers::reserve() {
    if (num_open_.load(std::memory_order_relaxed) < max_in_flight) {
        return {};
    }
    return owner_.ranks().engine().wait_for_network(
        [&] {
            make_progress();
            return num_open_.load(std::memory_order_relaxed) < max_in_flight;
        },
        [] { return std::string("waiting for earlier transfers with remote devices"); });
}

void started_transfers::make_progress() {
    owner_.ranks().engine().poll();
    std::lock_guard const guard(mutex_);
    end_complete();
}

std::uint64_t started_transfers::add(const shared_transfer &started, transfer_start &how) {
    started->has_event = how.has_event;
    if (client_observer *const observer = owner_.observer(); observer != nullptr) {
        started->begin = std::chrono::steady_clock::now();
    }
    started->over.begin();
    how.in_use = std::shared_ptr<const transport::completion>(started, &started->over);
    if (how.has_event) {
        how.poll = [this, started]() -> std::optional<status> {
            if (!started->over.is_done()) {
                make_progress();
            }
            if (!started->over.is_done()) {
                return std::nullopt;
            }
            return started->failure ? status(copy_of(*started->failure)) : status();
        };
    }
    std::lock_guard const guard(mutex_);
    std::uint64_t const number = next_number_++;
    in_flight_.emplace(number, started);
    count_open();
    return number;
}

status started_transfers::start_copy(remote_device &own, operation op, world_rank other,
                                     std::uint64_t destination, std::uint64_t source,
                                     std::size_t nbytes, transfer_start &how) {
    DIOMP_TRY(own.check(op == operation::begin_copy ? source : destination, nbytes));
    if (own.has_failed()) {
        return error(OMPX_ERR_PEER, own.session().failure());
    }
    DIOMP_TRY(reserve());
    auto const started = std::make_shared<transfer>();
    started->by = &own;
    started->device = own.index();
    started->nbytes = nbytes;
    std::uint64_t const number = add(started, how);
    owner_.ranks().send(own.rank(), world::batch_handler,
                        encode_copy(own, number, op, other, destination, source, nbytes));
    return {};
}

status started_transfers::start_by_client(world_rank with, rma::direction dir,
                                          std::uint64_t device_address, std::byte *here,
                                          std::size_t nbytes, transfer_start &how) {
    DIOMP_TRY(reserve());
    bool const is_put = dir == rma::direction::put;
    auto const started = std::make_shared<transfer>();
    started->with = with;
    started->which =
        is_put ? client_observer::direction::to_device : client_observer::direction::from_device;
    started->nbytes = nbytes;
    if (remote_device const *const own = owner_.device_of(with); own != nullptr) {
        started->device = own->index();
    }
    transport::completion &count = started->network.emplace().count();
    transport::rma_transport &network = *owner_.ranks().conduit().rma();
    DIOMP_TRY(is_put ? network.put(with, device_address, here, nbytes, count)
                     : network.get(with, device_address, here, nbytes, count));
    if (is_put) {
        DIOMP_TRY(network.flush(with, count));
    }
    add(started, how);
    return {};
}

void started_transfers::end(transfer &of, std::optional<error> failure) {
    client_observer *const observer = owner_.observer();
    if (observer != nullptr && of.device && !failure) {
        observer->moved(*of.device, of.which,
                        of.by == nullptr ? client_observer::carrier::network
                                         : client_observer::carrier::session,
                        of.nbytes, of.begin, std::chrono::steady_clock::now());
    }
    if (failure && !of.has_event && !failure_) {
        failure_.emplace(copy_of(*failure));
    }
    of.failure = std::move(failure);
    of.over.end();
}

void started_transfers::end_complete() {
    std::erase_if(in_flight_, [&](auto &each) {
        transfer &of = *each.second;
        if (of.by != nullptr) {
            if (!of.by->has_failed()) {
                return false;
            }
            end(of, error(OMPX_ERR_PEER, of.by->session().failure()));
            return true;
        }
        if (!of.network->is_done()) {
            return false;
        }
        status done = owner_.ranks().name_device(
            of.with, messaging::outcome_of(of.network->count(), owner_.ranks().engine(), [&] {
                return fmt::format("transferring {} bytes {} it", of.nbytes,
                                   of.which == client_observer::direction::to_device ? "to"
                                                                                     : "from");
            }));
        end(of, done ? std::nullopt : std::optional<error>(done.take_failure()));
        return true;
    });
    count_open();
}

void started_transfers::count_open() {
    num_open_.store(in_flight_.size() + (failure_ ? 1 : 0), std::memory_order_release);
}

result<bool> started_transfers::poll(remote_memory::errors which) {
    if (num_open_.load(std::memory_order_acquire) == 0) {
        return true;
    }
    owner_.ranks().engine().poll();
    std::lock_guard const guard(mutex_);
    end_complete();
    if (!in_flight_.empty()) {
        return false; // with an error, too: the others complete first
    }
    if (failure_ && which == remote_memory::errors::reported) {
        error found = std::move(*failure_);
        failure_.reset();
        count_open();
        return found;
    }
    return true;
}

status started_transfers::wait() {
    if (num_open_.load(std::memory_order_acquire) == 0) {
        return {}; // perhaps without a world
    }
    result<bool> idle = true;
    DIOMP_TRY(owner_.ranks().engine().wait_for_network(
        [&] {
            idle = poll(remote_memory::errors::reported);
            return !idle || idle.value();
        },
        [] { return std::string("waiting for transfers with remote devices"); }));
    DIOMP_TRY(idle);
    return {};
}

void started_transfers::handle_reply(world_rank source, const batch_reply &reply) {
    std::lock_guard const guard(mutex_);
    auto const end_one = [&](std::uint64_t number) {
        auto const found = in_flight_.find(number);
        if (found == in_flight_.end() || found->second->by == nullptr ||
            found->second->by->rank() != source) {
            return;
        }
        transfer &of = *found->second;
        std::optional<error> failure;
        if (reply.failed) {
            failure.emplace(OMPX_ERR_PEER, fmt::format("{}: {}", of.by->label(), reply.rest));
        }
        end(of, std::move(failure));
        in_flight_.erase(found);
    };
    if (reply.failed) {
        end_one(reply.batch);
    } else {
        packet_reader numbers(reply.rest);
        while (!numbers.at_end() && numbers.ok()) {
            end_one(numbers.number<std::uint64_t>());
        }
    }
    count_open();
}

} // namespace diomp::offload::remote
