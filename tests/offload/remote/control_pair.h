// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Both ends of a control connection in one process, or for two that are forked afterwards.
#pragma once

#include "base/secure/pairing.h"
#include "offload/remote/control.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

namespace diomp_test {

struct control_pair {
    diomp::offload::remote::control_connection client;
    diomp::offload::remote::control_connection service;
};

inline diomp::secure::secret a_token() { return diomp::secure::secret::from_text("a token"); }

/// The two sides of a handshake that has been done.
inline std::pair<diomp::secure::session_keys, diomp::secure::session_keys> agree() {
    namespace remote = diomp::offload::remote;
    using diomp::secure::handshake;
    auto initiator = handshake::initiate(
        a_token(), remote::handshake_options_for(remote::client_party(0)), remote::service_party);
    auto responder =
        handshake::respond(a_token(), remote::handshake_options_for(remote::service_party),
                           {diomp::secure::role::client, 0, 1});
    diomp::secure::testing::run(initiator, responder);
    return {initiator.take_session_keys(), responder.take_session_keys()};
}

inline control_pair make_control_pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    auto [client, service] = agree();
    return {{diomp::unique_fd(ends[0]), std::move(client)},
            {diomp::unique_fd(ends[1]), std::move(service)}};
}

/// The same, connected by TCP.
inline control_pair make_tcp_control_pair() {
    diomp::unique_fd const listener(diomp::offload::remote::listen_at("127.0.0.1", 0).take());
    sockaddr_in address{};
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address), &length), 0);
    diomp::unique_fd here(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(here.get(), reinterpret_cast<sockaddr *>(&address), length), 0);
    diomp::unique_fd there(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(there.valid());
    auto [client, service] = agree();
    return {{std::move(here), std::move(client)}, {std::move(there), std::move(service)}};
}

} // namespace diomp_test
