// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/connector.h"

#include "base/log.h"

#include <fmt/core.h>

namespace diomp::transport::tcp {
namespace {

/// Time limit of a connection attempt to one address, for the network.
constexpr std::chrono::seconds connect_timeout{3};
/// Time in addition for the peer's process, which may share its core with a hundred others.
constexpr std::chrono::seconds handshake_timeout{10};
/// Attempts at an address that closes the connection during the handshake: a rank with many
/// unauthenticated connections closes some to free space.
constexpr int max_closed_attempts = 20;

} // namespace

status connector::start(address_blob own, std::vector<in6_addr> local) {
    own_address_ = std::move(own);
    local_addresses_ = std::move(local);
    auto opening = secure::opening_connections::create();
    DIOMP_TRY(opening);
    opening_.emplace(opening.take());
    return {};
}

status connector::connect(const peer &target, const std::string &previous_error) {
    auto const text = launcher_.get(target.rank(), address_key);
    address_blob const theirs = text.ok() ? decode_address_blob(text.value()) : address_blob{};
    std::vector<in6_addr> const candidates =
        candidate_addresses(theirs, own_address_, local_addresses_);
    attempts &tried = attempts_[target.rank().index()];
    note_failure(target.rank(), text.ok() ? previous_error : text.failure().message());
    while (tried.next_address < candidates.size()) {
        in6_addr const &candidate = candidates[tried.next_address++];
        auto started = start_connecting(candidate, theirs.port, tuning_);
        if (started.ok()) {
            log(log_level::debug, "tcp: connecting to {} at {}", target.name(), to_text(candidate));
            opening_->add(tag_of(target.rank()), started.take(),
                          credentials_.initiate(target.rank()), connect_timeout, handshake_timeout);
            return {};
        }
        note_failure(target.rank(),
                     fmt::format("{}: {}", to_text(candidate), started.failure().message()));
    }
    auto const found = failures_.find(target.rank());
    return error(OMPX_ERR_PEER,
                 fmt::format("it cannot be reached at any of its {} addresses ({})",
                             candidates.size(),
                             found == failures_.end() ? "it has none" : found->second));
}

void connector::note_failure(world_rank target, const std::string &why) {
    if (why.empty()) {
        return;
    }
    std::string &known = failures_[target];
    if (known.find(why) == std::string::npos) {
        known += (known.empty() ? "" : "; ") + why;
    }
}

void connector::note_connected(world_rank target) {
    attempts_[target.index()] = {};
    failures_.erase(target);
}

status connector::retry(const peer &target, const attempt_result &failed) {
    attempts &tried = attempts_[target.rank().index()];
    if (failed.how == secure::opening_connections::outcome::closed &&
        ++tried.num_closed < max_closed_attempts) {
        --tried.next_address;
    } else {
        tried.num_closed = 0;
    }
    return connect(target, failed.why);
}

} // namespace diomp::transport::tcp
