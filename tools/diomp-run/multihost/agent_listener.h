// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The port at which the agents connect, until all hosts are ready.
#pragma once

#include "agent_protocol.h"
#include "base/secure/pending_connections.h"
#include "listener.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace diomp::run {

/// Limit of concurrent remote shells: each costs this host a process and a key exchange.
inline constexpr std::size_t max_starting = 64;

class agent_listener {
public:
    struct handlers {
        /// A line for the user.
        std::function<void(const std::string &)> on_text;
        /// An agent has connected and is authenticated; its number is the index of its host.
        std::function<void(secure::pending_connections::proven_connection)> on_agent;
    };
    static result<std::unique_ptr<agent_listener>> create(event_loop &loop, listener port,
                                                          std::size_t hosts, handlers on);
    ~agent_listener() { loop_.remove(token_); }
    agent_listener(const agent_listener &) = delete;
    agent_listener &operator=(const agent_listener &) = delete;

    /// Returns the data for the agent of a host, which include the secret.
    [[nodiscard]] agent_bootstrap bootstrap(std::size_t index, double timeout_s,
                                            std::string ignored_signals) const;
    /// Returns "ADDRESS port PORT", the first address.
    [[nodiscard]] std::string describe() const;
    /// Closes the port.
    void close();

private:
    agent_listener(event_loop &loop, listener port, handlers on)
        : loop_(loop), on_(std::move(on)), addresses_(std::move(port.addresses)) {}

    event_loop &loop_;
    handlers on_;
    secure::secret secret_ = secure::secret::random(); ///< proves the identity of head and agents
    std::vector<std::pair<std::string, std::string>> addresses_; ///< listener::addresses
    std::optional<secure::pending_connections> pending_;
    event_loop::token token_ = event_loop::token::none;
};

} // namespace diomp::run
