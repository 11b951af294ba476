// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A client and what listens where its service should be: another program, one that records, one
// that has another token, and services that behave badly after they have proved who they are.
#include "base/secure/complete_handshake.h"
#include "base/secure/sockets.h"
#include "offload/remote/client.h"
#include "offload/remote/control_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <string>
#include <thread>

namespace diomp::offload::remote {
namespace {

using namespace std::chrono_literals;
using diomp_test::a_token;
using secure::handshake;
using testing::HasSubstr;

constexpr int num_tries = 200;
constexpr double limit_s = 20;
/// A client tries an address again so often that closes its connections.
constexpr std::size_t most_tries = 20;

/// Listens at loopback and does with each connection what `behave` says.
class stand_in {
public:
    explicit stand_in(std::function<void(unique_fd)> behave)
        : listener_(secure::testing::listen_on_loopback()), behave_(std::move(behave)),
          thread_([this] { serve(); }) {}
    ~stand_in() {
        stopping_.store(true);
        static_cast<void>(secure::testing::connect_to(listener_.port));
        thread_.join();
    }
    stand_in(const stand_in &) = delete;
    stand_in &operator=(const stand_in &) = delete;
    [[nodiscard]] int port() const { return listener_.port; }
    [[nodiscard]] std::size_t num_connections() const { return num_connections_; }

private:
    void serve() {
        while (!stopping_.load()) {
            pollfd entry{listener_.socket.get(), POLLIN, 0};
            ::poll(&entry, 1, -1);
            unique_fd next(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (next.valid() && !stopping_.load()) {
                ++num_connections_;
                behave_(std::move(next));
            }
        }
    }

    secure::testing::loopback_listener listener_;
    std::function<void(unique_fd)> behave_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> num_connections_{0};
    std::thread thread_;
};

/// All that comes, up to `most_bytes` or the other end's end.
std::string read_all(int socket, std::size_t most_bytes) {
    std::string bytes;
    while (bytes.size() < most_bytes) {
        std::array<char, 4096> buffer{};
        ssize_t const got =
            ::recv(socket, buffer.data(), std::min(buffer.size(), most_bytes - bytes.size()), 0);
        if (got <= 0) {
            break;
        }
        bytes.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return bytes;
}

result<std::unique_ptr<client>> connect(const stand_in &to, double timeout_s = limit_s) {
    client::options chosen;
    chosen.services = {{.host = "127.0.0.1", .port = to.port()}};
    chosen.token = a_token();
    chosen.connect_timeout_s = timeout_s;
    return client::connect(chosen);
}

std::string failure_of(const result<std::unique_ptr<client>> &made) {
    return made.ok() ? "it has connected" : made.failure().message();
}

TEST(impostor, learns_no_token_from_a_client) {
    std::string seen;
    {
        stand_in const other([&](unique_fd socket) {
            std::string const bytes = read_all(socket.get(), handshake::hello_bytes);
            EXPECT_EQ(bytes.size(), handshake::hello_bytes);
            seen += bytes;
        });
        for (int i = 0; i < num_tries; ++i) {
            auto const made = connect(other);
            ASSERT_FALSE(made.ok());
            EXPECT_THAT(made.failure().message(), HasSubstr("refuses this process"));
            EXPECT_THAT(made.failure().remedy(), HasSubstr("DIOMP_TOKEN"));
        }
        EXPECT_EQ(other.num_connections(), num_tries * most_tries);
    }
    EXPECT_EQ(seen.find("a token"), std::string::npos);
    // Nothing comes twice that could tell clients apart, nor the secret itself.
    secure::secret const token = a_token();
    std::string const key(reinterpret_cast<const char *>(token.bytes().data()), secure::key_bytes);
    EXPECT_EQ(seen.find(key), std::string::npos);
    EXPECT_EQ(seen.find(seen.substr(0, 16), 16), std::string::npos);
}

TEST(impostor, that_says_anything_is_found_out) {
    for (std::string const &text :
         {std::string("HTTP/1.1 400 Bad Request\r\n\r\n") + std::string(100, ' '),
          std::string(handshake::response_bytes, '\0'), std::string(5000, '\xff')}) {
        stand_in const other([&](unique_fd socket) {
            read_all(socket.get(), handshake::hello_bytes);
            static_cast<void>(!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL));
            read_all(socket.get(), 1000);
        });
        for (int i = 0; i < num_tries; ++i) {
            EXPECT_THAT(failure_of(connect(other)),
                        HasSubstr("does not prove that it is a device service"));
        }
        EXPECT_EQ(other.num_connections(), std::size_t{num_tries}); // such a one is not tried again
    }
}

TEST(impostor, that_sends_back_what_comes_is_found_out) {
    stand_in const other([](unique_fd socket) {
        std::string const hello = read_all(socket.get(), handshake::hello_bytes);
        static_cast<void>(!::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL));
        EXPECT_EQ(read_all(socket.get(), 1000), ""); // no proof for it
    });
    for (int i = 0; i < num_tries; ++i) {
        EXPECT_THAT(failure_of(connect(other)), HasSubstr("does not prove"));
    }
}

TEST(impostor, with_the_recording_of_a_service_is_found_out) {
    // The answer of a service to a client with the same token.
    auto recorded =
        handshake::initiate(a_token(), handshake_options_for(client_party(0)), service_party);
    auto genuine =
        handshake::respond(a_token(), handshake_options_for(service_party), {secure::role::client});
    auto const seen = secure::testing::run(recorded, genuine);
    stand_in const other([&](unique_fd socket) {
        read_all(socket.get(), handshake::hello_bytes);
        static_cast<void>(
            !::send(socket.get(), seen.answer.data(), seen.answer.size(), MSG_NOSIGNAL));
        EXPECT_EQ(read_all(socket.get(), 1000), "");
    });
    for (int i = 0; i < num_tries; ++i) {
        EXPECT_THAT(failure_of(connect(other)), HasSubstr("does not prove"));
    }
}

/// A responder's side of the handshake; nothing if it fails.
std::optional<control_connection> prove(unique_fd socket, const secure::secret &token,
                                        const secure::handshake_options &options) {
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    auto proven = secure::complete_handshake(
        socket.get(),
        handshake::respond(token, options, {secure::role::client, 0, ~std::uint32_t{0}}), limit_s);
    if (!proven) {
        return std::nullopt;
    }
    return std::optional<control_connection>(std::in_place, std::move(socket), proven.take());
}

TEST(impostor, with_another_token_or_for_another_purpose_is_found_out) {
    auto const service = handshake_options_for(service_party);
    auto for_ranks = service;
    for_ranks.why = secure::purpose::transfers;
    auto other_role = service;
    other_role.self = {secure::role::session, 0};
    std::vector<std::pair<secure::secret, secure::handshake_options>> impostors;
    impostors.emplace_back(secure::secret::from_text("another token"), service);
    impostors.emplace_back(a_token(), for_ranks);
    impostors.emplace_back(a_token(), other_role);
    for (auto const &[token, options] : impostors) {
        stand_in const other([&](unique_fd socket) {
            EXPECT_FALSE(prove(std::move(socket), token, options).has_value());
        });
        for (int i = 0; i < num_tries / 10; ++i) { // each tries the address again
            EXPECT_THAT(failure_of(connect(other)), HasSubstr("refuses this process"));
        }
    }
}

TEST(service_peer, of_another_version_is_named_as_such) {
    auto options = handshake_options_for(service_party);
    ++options.version;
    stand_in const other([&](unique_fd socket) {
        EXPECT_FALSE(prove(std::move(socket), a_token(), options).has_value());
    });
    EXPECT_THAT(failure_of(connect(other)),
                HasSubstr("speaks version " + std::to_string(options.version)));
}

TEST(service_peer, that_says_nothing_is_given_up) {
    std::vector<unique_fd> held;
    stand_in const other([&](unique_fd socket) { held.push_back(std::move(socket)); });
    auto const begin = std::chrono::steady_clock::now();
    auto const made = connect(other, 0.2);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(made.failure().message(), HasSubstr("does not answer in time"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

/// What a client says of a service that proves who it is and then does as `behave` says.
std::string failure_with(const std::function<void(control_connection &)> &behave) {
    stand_in const other([&](unique_fd socket) {
        auto link = prove(std::move(socket), a_token(), handshake_options_for(service_party));
        ASSERT_TRUE(link.has_value());
        behave(*link);
    });
    return failure_of(connect(other, 1));
}

TEST(service_peer, that_refuses_is_quoted) {
    EXPECT_THAT(failure_with([](control_connection &link) {
                    packet_writer packet(frame::refused);
                    packet.text("a reason");
                    static_cast<void>(link.send(packet.take()));
                }),
                HasSubstr("refuses: a reason"));
}

TEST(service_peer, whose_offer_is_malformed_is_not_used) {
    EXPECT_THAT(failure_with([](control_connection &link) {
                    packet_writer packet(frame::accepted);
                    packet.number(std::uint32_t{1});
                    static_cast<void>(link.send(packet.take()));
                    static_cast<void>(link.receive(limit_s));
                }),
                HasSubstr("is not a device service"));
}

TEST(service_peer, that_closes_or_says_nothing_after_the_handshake_is_given_up) {
    EXPECT_THAT(failure_with([](control_connection &) {}), HasSubstr("offers no device"));
    EXPECT_THAT(
        failure_with([](control_connection &link) { static_cast<void>(link.receive(limit_s)); }),
        HasSubstr("offers no device: no answer within 1 s"));
}

TEST(service_peer, that_closes_after_its_offer_is_given_up) {
    EXPECT_THAT(failure_with([](control_connection &link) {
                    device_description offered;
                    offered.num_devices = 1;
                    offered.memory_bytes = 1 << 20;
                    offered.kind = "cpu";
                    static_cast<void>(link.send(encode(offered)));
                }),
                HasSubstr("the connection was closed"));
}

} // namespace
} // namespace diomp::offload::remote
