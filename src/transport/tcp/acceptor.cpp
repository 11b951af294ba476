// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/acceptor.h"

#include "base/log.h"
#include "transport/tcp/peer.h"

#include <algorithm>

namespace diomp::transport::tcp {

namespace {

/// As many unauthenticated connections as ranks may connect at once, within limits: those of the
/// own job must not push out each other.
secure::pending_options options_for(int num_peers) {
    auto const count = static_cast<std::size_t>(std::clamp(num_peers, 64, 1024));
    return {.max_silent = count, .max_plausible = count};
}

} // namespace

status acceptor::start(unique_fd listener, const credentials &own) {
    auto pending = secure::pending_connections::create(
        std::move(listener), [&own] { return own.respond(); },
        [](const std::string &text) { log(log_level::warn, "tcp: {}", text); },
        options_for(num_unconnected_.load()));
    DIOMP_TRY(pending);
    pending_.emplace(pending.take());
    return {};
}

std::vector<acceptor::proven_connection> acceptor::advance() {
    // Not try_lock: the descriptor stays readable until the other thread is done, and a thread that
    // polls it meanwhile may keep that one from its core.
    std::lock_guard const guard(mutex_);
    return pending_->advance();
}

void acceptor::note_connected(peer &known) {
    if (known.note_connected() && num_unconnected_.fetch_sub(1) == 1) {
        stop_listening();
    }
}

void acceptor::stop_listening() {
    if (can_reconnect_) {
        return;
    }
    std::lock_guard const guard(mutex_);
    pending_->stop_listening();
}

} // namespace diomp::transport::tcp
