// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every attack on a listening socket that docs/security.md lists, against each role that listens,
// on an idle machine and beside threads that use all processors: none is authenticated, none
// receives more than the response that its hello is entitled to, and a genuine peer is served
// afterwards.
#include "base/secure/complete_handshake.h"
#include "base/secure/pairing.h"
#include "base/secure/pending_connections.h"
#include "base/secure/sockets.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <poll.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace diomp;
using namespace diomp::secure;
using namespace diomp::secure::testing;
using namespace std::chrono_literals;

constexpr int num_tries = 200; ///< of each attack
constexpr std::uint32_t version = 7;

/// A kind of listening socket, and who connects to it.
struct listening_role {
    const char *name;
    purpose why;
    party listener;
    party_range expected;

    [[nodiscard]] party peer() const { return {expected.what, expected.first + 1}; }
    [[nodiscard]] handshake_options options(const party &self) const {
        return {.why = why, .self = self, .version = version};
    }
};

constexpr listening_role all_roles[] = {
    {"rank", purpose::transfers, {role::rank, 5}, {role::rank, 0, 8}},
    {"head", purpose::multihost_launch, {role::head}, {role::agent, 0, 8}},
    {"service", purpose::device_service, {role::service}, {role::client, 0, 8}},
};

struct parameters {
    listening_role to;
    bool is_busy;
};

/// Threads that use all processors.
class load {
public:
    explicit load(bool is_wanted) {
        unsigned const count = is_wanted ? 2 * std::thread::hardware_concurrency() : 0;
        for (unsigned i = 0; i < count; ++i) {
            threads_.emplace_back([this] {
                while (!is_over_.load(std::memory_order_relaxed)) {
                }
            });
        }
    }
    ~load() {
        is_over_.store(true);
        for (auto &each : threads_) {
            each.join();
        }
    }
    load(const load &) = delete;
    load &operator=(const load &) = delete;

private:
    std::atomic<bool> is_over_{false};
    std::vector<std::thread> threads_;
};

/// Adds bytes to those in hand.
bytes operator+(bytes first, const bytes &second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

class secure_attacks : public ::testing::TestWithParam<parameters> {
protected:
    void SetUp() override {
        loopback_listener listener = listen_on_loopback();
        port_ = listener.port;
        auto made = pending_connections::create(
            std::move(listener.socket), [this] { return genuine_responder(); },
            [this](const std::string & /*text*/) { ++num_reports_; });
        ASSERT_TRUE(made.ok());
        pending_.emplace(made.take());
    }

    [[nodiscard]] static const listening_role &target() { return GetParam().to; }
    [[nodiscard]] handshake genuine_responder() const {
        return handshake::respond(key_, target().options(target().listener), target().expected);
    }
    /// An initiator with the listener's secret; the arguments are what it says.
    [[nodiscard]] handshake initiator(const handshake_options &options,
                                      const party &listener) const {
        return handshake::initiate(key_, options, listener);
    }
    [[nodiscard]] handshake genuine_initiator() const {
        return initiator(target().options(target().peer()), target().listener);
    }
    /// The messages of an earlier connection of a genuine peer.
    [[nodiscard]] transcript record() const {
        auto from = genuine_initiator();
        auto to = genuine_responder();
        return run(from, to);
    }
    bytes random_bytes(std::size_t nbytes) {
        bytes made(nbytes);
        for (auto &each : made) {
            each = static_cast<unsigned char>(random_());
        }
        return made;
    }

    void work() {
        pollfd entry{pending_->fd(), POLLIN, 0};
        ::poll(&entry, 1, 1);
        for (auto &each : pending_->advance()) {
            proven_.push_back(std::move(each));
        }
    }
    /// Sends, and returns what comes until the other end closes the connection or `most_bytes`.
    bytes exchange(const unique_fd &socket, const bytes &sent, std::size_t most_bytes) {
        static_cast<void>(!::send(socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL));
        bytes got;
        auto const end = std::chrono::steady_clock::now() + 20s;
        while (got.size() < most_bytes && std::chrono::steady_clock::now() < end) {
            work();
            unsigned char buffer[512];
            ssize_t const count = ::recv(socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
            if (count == 0 || (count < 0 && !is_retryable(errno))) {
                return got;
            }
            got.insert(got.end(), buffer, buffer + std::max<ssize_t>(count, 0));
        }
        EXPECT_GE(got.size(), most_bytes) << "the connection stays open";
        return got;
    }
    /// All that a new connection receives for `sent` until it is closed.
    bytes received_for(const bytes &sent) {
        unique_fd const socket = connect_to(port_);
        return exchange(socket, sent, ~std::size_t{0});
    }
    /// Runs the attack num_tries times; it returns what its last connection received.
    void repeat(const char *what, std::size_t max_received, const std::function<bytes()> &attack) {
        SCOPED_TRACE(what);
        for (int i = 0; i < num_tries && !HasFailure(); ++i) {
            EXPECT_LE(attack().size(), max_received);
            EXPECT_TRUE(proven_.empty()) << "it has been authenticated";
        }
    }
    void expect_genuine_peer_is_served() {
        unique_fd const socket = connect_to(port_);
        std::atomic<bool> is_connected{false};
        std::thread peer(
            [&] { is_connected = complete_handshake(socket.get(), genuine_initiator(), 20).ok(); });
        auto const end = std::chrono::steady_clock::now() + 20s;
        while (proven_.empty() && std::chrono::steady_clock::now() < end) {
            work();
        }
        peer.join();
        EXPECT_TRUE(is_connected.load());
        ASSERT_EQ(proven_.size(), 1);
        EXPECT_EQ(proven_.front().proven.peer, target().peer());
    }

    secret key_ = secret::random();
    std::uint16_t port_ = 0;
    std::mt19937 random_{1}; // NOLINT(cert-msc32-c,cert-msc51-cpp): repeatable
    int num_reports_ = 0;
    std::optional<pending_connections> pending_;
    std::vector<pending_connections::proven_connection> proven_;
};

constexpr std::size_t nothing = 0;

TEST_P(secure_attacks, without_the_secret) {
    load const others(GetParam().is_busy);
    repeat("random bytes", nothing,
           [&] { return received_for(random_bytes(handshake::hello_bytes)); });
    repeat("zeros", nothing, [&] { return received_for(bytes(handshake::hello_bytes)); });
    repeat("a long text", nothing, [&] { return received_for(random_bytes(5000)); });
    repeat("another secret", nothing, [&] {
        auto other = handshake::initiate(secret::random(), target().options(target().peer()),
                                         target().listener);
        return received_for(take_output(other));
    });
    repeat("a flipped bit", nothing, [&] {
        bytes hello = record().hello;
        hello[random_() % hello.size()] ^= static_cast<unsigned char>(1U << (random_() % 8));
        return received_for(hello);
    });
    expect_genuine_peer_is_served();
}

TEST_P(secure_attacks, with_a_recording) {
    load const others(GetParam().is_busy);
    transcript const seen = record();
    repeat("hello and proof", handshake::response_bytes,
           [&] { return received_for(seen.hello + seen.proof); });
    repeat("hello, then the proof after the response", handshake::response_bytes, [&] {
        unique_fd const socket = connect_to(port_);
        bytes const response = exchange(socket, seen.hello, handshake::response_bytes);
        EXPECT_NE(response, seen.answer);
        return response + exchange(socket, seen.proof, ~std::size_t{0});
    });
    repeat("the proof alone, as a hello", nothing,
           [&] { return received_for(seen.proof + seen.proof + seen.proof); });
    repeat("the listener's own response, as a hello", nothing,
           [&] { return received_for(seen.answer); });
    expect_genuine_peer_is_served();
}

TEST_P(secure_attacks, that_reflect) {
    load const others(GetParam().is_busy);
    transcript const seen = record();
    repeat("a response comes back on its connection", handshake::response_bytes, [&] {
        unique_fd const socket = connect_to(port_);
        bytes const response = exchange(socket, seen.hello, handshake::response_bytes);
        return response + exchange(socket, response, ~std::size_t{0});
    });
    repeat("a response goes to another connection", nothing, [&] {
        unique_fd const socket = connect_to(port_);
        return received_for(exchange(socket, seen.hello, handshake::response_bytes));
    });
    repeat("the listener connects to itself", handshake::response_bytes, [&] {
        auto own = initiator(target().options(target().listener), target().listener);
        return target().expected.contains(target().listener) ? bytes() // the role may
                                                             : received_for(take_output(own));
    });
    expect_genuine_peer_is_served();
}

// With the secret, but of a peer that the listener does not expect. The response to those that name
// this listener says so, sealed.
TEST_P(secure_attacks, of_the_wrong_party) {
    load const others(GetParam().is_busy);
    auto const peer = target().peer();
    repeat("another purpose", nothing, [&] {
        auto options = target().options(peer);
        options.why = purpose::local_launch;
        auto other = initiator(options, target().listener);
        return received_for(take_output(other));
    });
    repeat("another listener's number", nothing, [&] {
        auto other = initiator(target().options(peer),
                               {target().listener.what, target().listener.number + 1});
        return received_for(take_output(other));
    });
    repeat("another listener's role", nothing, [&] {
        auto other = initiator(target().options(peer), {role::session, target().listener.number});
        return received_for(take_output(other));
    });
    repeat("an own number that does not exist", handshake::response_bytes, [&] {
        auto other =
            initiator(target().options({peer.what, target().expected.count}), target().listener);
        return received_for(take_output(other));
    });
    repeat("an own role that is not expected", handshake::response_bytes, [&] {
        auto other = initiator(target().options({role::launcher}), target().listener);
        return received_for(take_output(other));
    });
    repeat("another version", handshake::response_bytes, [&] {
        auto options = target().options(peer);
        options.version = version + 1;
        auto other = initiator(options, target().listener);
        return received_for(take_output(other));
    });
    expect_genuine_peer_is_served();
}

std::vector<parameters> all_parameters() {
    std::vector<parameters> made;
    for (bool const is_busy : {false, true}) {
        for (listening_role const &each : all_roles) {
            made.push_back({each, is_busy});
        }
    }
    return made;
}

INSTANTIATE_TEST_SUITE_P(on, secure_attacks, ::testing::ValuesIn(all_parameters()),
                         [](const auto &info) {
                             return std::string(info.param.to.name) +
                                    (info.param.is_busy ? "_busy" : "_idle");
                         });

} // namespace
