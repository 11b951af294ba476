// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent_listener.h"

#include "core/own_process.h"
#include "head_connection.h"

#include <fmt/format.h>

#include <sys/epoll.h>

namespace diomp::run {
namespace {

/// Limit of unauthenticated connections per address: an agent connects to all addresses at once.
constexpr std::size_t max_pending_per_address = max_starting + 64;

} // namespace

result<std::unique_ptr<agent_listener>> agent_listener::create(event_loop &loop, listener port,
                                                               std::size_t hosts, handlers on) {
    unique_fd socket = std::move(port.socket);
    std::unique_ptr<agent_listener> made(new agent_listener(loop, std::move(port), std::move(on)));
    auto *const self = made.get();
    std::size_t const max_pending = max_pending_per_address * self->addresses_.size();
    raise_open_files(hosts * 4 + 2 * max_pending + 64);
    auto pending = secure::pending_connections::create(
        std::move(socket),
        [self, hosts] {
            return secure::handshake::respond(
                self->secret_, launch_handshake({secure::role::head, 0}),
                {secure::role::agent, 0, static_cast<std::uint32_t>(hosts)});
        },
        self->on_.on_text, {.max_silent = max_pending, .max_plausible = max_pending});
    DIOMP_TRY(pending);
    self->pending_.emplace(pending.take());
    auto token = loop.add(self->pending_->fd(), EPOLLIN, [self](std::uint32_t) {
        for (auto &each : self->pending_->advance()) {
            self->on_.on_agent(std::move(each));
        }
    });
    DIOMP_TRY(token);
    self->token_ = token.value();
    return made;
}

agent_bootstrap agent_listener::bootstrap(std::size_t index, double timeout_s,
                                          std::string ignored_signals) const {
    return {static_cast<int>(index), secret_.encode(), timeout_s, std::move(ignored_signals),
            addresses_};
}

std::string agent_listener::describe() const {
    return fmt::format("{} port {}", addresses_.front().first, addresses_.front().second);
}

void agent_listener::close() {
    loop_.remove(token_);
    pending_.reset();
}

} // namespace diomp::run
