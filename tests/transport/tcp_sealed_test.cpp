// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encrypted connections of the TCP conduit: what both ends see, what the wire shows, and what
// becomes of changed bytes.
#include "base/secure/pairing.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace {

namespace tcp = diomp::transport::tcp;
namespace secure = diomp::secure;
using diomp::unique_fd;
using diomp::world_rank;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Accepts messages, and stores the data of puts where their address says.
class recorder final : public tcp::frame_handler {
public:
    std::byte *find_body_buffer(tcp::connection &on, const tcp::frame &head,
                                std::span<const std::byte> /*front*/) override {
        return head.what == tcp::kind::put ? reinterpret_cast<std::byte *>(head.address)
                                           : on.incoming().scratch(head.nbytes);
    }
    bool handle_frame(tcp::connection & /*on*/, const tcp::frame &head,
                      std::span<const std::byte> /*front*/, const std::byte *body) override {
        bodies.emplace_back(reinterpret_cast<const char *>(body), head.nbytes);
        return true;
    }

    std::vector<std::string> bodies;
};

std::string pattern(std::size_t nbytes) {
    std::string text(nbytes, '\0');
    for (std::size_t i = 0; i < nbytes; ++i) {
        text[i] = static_cast<char>(i * 7 + i / 251);
    }
    return text;
}

tcp::frame head_of(const std::string &body, tcp::kind what = tcp::kind::message) {
    return {.what = what, .nbytes = body.size()};
}

std::pair<unique_fd, unique_fd> connected() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

/// What the two ends of a connection want.
struct wishes {
    secure::protection initiator;
    secure::protection responder;
};
constexpr wishes both_plain{secure::protection::plain, secure::protection::plain};
constexpr wishes both_sealed{secure::protection::sealed, secure::protection::sealed};

/// Two connections, and a wire between them that is looked at and changed on its way.
class wire {
public:
    explicit wire(const wishes &want) {
        secure::secret const key = secure::secret::random();
        auto options = secure::testing::options_of(secure::testing::rank_2);
        options.wanted = want.initiator;
        auto initiator = secure::handshake::initiate(key, options, secure::testing::rank_5);
        options = secure::testing::options_of(secure::testing::rank_5);
        options.wanted = want.responder;
        auto responder = secure::handshake::respond(key, options, secure::testing::eight_ranks);
        secure::testing::run(initiator, responder);
        auto [left, near] = connected();
        auto [right, far] = connected();
        near_ = std::move(near);
        far_ = std::move(far);
        sender.emplace(std::move(left), peer_, stream(initiator.take_session_keys()), &num_busy);
        receiver.emplace(std::move(right), peer_, stream(responder.take_session_keys()));
    }

    void send(const std::string &body, tcp::kind what = tcp::kind::message, void *to = nullptr) {
        tcp::frame head = head_of(body, what);
        head.address = reinterpret_cast<std::uint64_t>(to);
        sender->send(head, body.data(), body.size(), &source_free);
    }
    /// Carries bytes on until neither end has any. At most `step` at a time.
    void carry(std::size_t step = std::size_t{1} << 16) {
        for (int idle = 0; idle < 3; ++idle) {
            if (sender->transmit()) {
                idle = 0;
            }
            std::string bytes(step, '\0');
            ssize_t const got = ::recv(near_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (got > 0) {
                idle = 0;
                bytes.resize(static_cast<std::size_t>(got));
                change(bytes, seen.size());
                seen += bytes;
                std::string_view rest = bytes;
                while (!rest.empty() &&
                       receiver->current_state() == tcp::connection::state::connected) {
                    ssize_t const sent =
                        ::send(far_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
                    rest.remove_prefix(sent > 0 ? static_cast<std::size_t>(sent) : 0);
                    receiver->incoming().receive(taker);
                }
            }
            receiver->incoming().receive(taker);
        }
    }

    std::string seen; ///< on the wire
    std::function<void(std::string &bytes, std::size_t position)> change =
        [](std::string & /*bytes*/, std::size_t /*position*/) {};
    recorder taker;
    std::atomic<int> num_busy{0};
    std::optional<tcp::connection> sender;
    std::optional<tcp::connection> receiver;
    diomp::transport::completion source_free;

private:
    static std::unique_ptr<tcp::sealed_stream> stream(secure::session_keys proven) {
        return proven.mode == secure::protection::sealed
                   ? std::make_unique<tcp::sealed_stream>(std::move(proven))
                   : nullptr;
    }

    tcp::peer peer_{world_rank(1), "there"};
    unique_fd near_;
    unique_fd far_;
};

const std::string payload = "a payload that a host on the network must not be able to read";

TEST(tcp_sealed, a_payload_is_on_the_wire_of_plain_connections_only) {
    for (bool const is_large : {false, true}) {
        std::string const body = is_large ? pattern(100000) + payload + pattern(5000) : payload;
        wire plain(both_plain);
        plain.send(body);
        plain.carry();
        EXPECT_THAT(plain.taker.bodies, ElementsAre(body));
        EXPECT_NE(plain.seen.find(payload), std::string::npos);

        wire sealed(both_sealed);
        sealed.send(body);
        sealed.carry();
        EXPECT_THAT(sealed.taker.bodies, ElementsAre(body));
        EXPECT_EQ(sealed.seen.find(payload), std::string::npos);
        EXPECT_EQ(sealed.seen.find(payload.substr(0, 8)), std::string::npos);
        EXPECT_EQ(sealed.seen.find(pattern(16)), std::string::npos);
    }
}

TEST(tcp_sealed, one_end_that_wants_it_is_enough) {
    for (wishes const &want : {wishes{secure::protection::plain, secure::protection::sealed},
                               wishes{secure::protection::sealed, secure::protection::plain}}) {
        wire mixed(want);
        EXPECT_NE(mixed.sender->stream().sealed(), nullptr);
        EXPECT_NE(mixed.receiver->stream().sealed(), nullptr);
        mixed.send(payload);
        mixed.carry();
        EXPECT_THAT(mixed.taker.bodies, ElementsAre(payload));
        EXPECT_EQ(mixed.seen.find(payload), std::string::npos);
    }
}

TEST(tcp_sealed, frames_of_all_sizes_arrive_however_the_wire_cuts_them) {
    std::vector<std::string> bodies;
    std::size_t const record = tcp::sealed_stream::record_bytes;
    for (std::size_t const nbytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{33}, record - 32, record - 31, record,
          3 * record + 7, std::size_t{9000}, std::size_t{0}, std::size_t{3} << 20}) {
        bodies.push_back(pattern(nbytes));
    }
    for (std::size_t const step : {std::size_t{97}, std::size_t{4096}, std::size_t{1} << 16}) {
        wire between(both_sealed);
        for (std::string const &body : bodies) {
            between.send(body);
        }
        between.carry(step);
        EXPECT_EQ(between.taker.bodies, bodies) << step;
        EXPECT_FALSE(between.sender->has_queued_data());
        EXPECT_EQ(between.sender->copied_bytes(), 0);
        EXPECT_TRUE(between.source_free.is_done());
        EXPECT_EQ(between.source_free.failure, 0);
    }
}

/// The position of a byte that is changed: in a length, in text, in a tag; early and late.
class tcp_sealed_change : public testing::TestWithParam<std::size_t> {};

TEST_P(tcp_sealed_change, ends_the_connection_with_a_reason_and_no_wrong_data) {
    std::string const before = "before";
    std::string const body = pattern(200000);
    std::string target(body.size(), '.');
    wire between(both_sealed);
    between.send(before);
    between.carry();
    std::size_t const at = between.seen.size() + GetParam();
    between.change = [at](std::string &bytes, std::size_t position) {
        if (at >= position && at - position < bytes.size()) {
            bytes[at - position] = static_cast<char>(bytes[at - position] ^ 0x10);
        }
    };
    between.send(body, tcp::kind::put, target.data());
    between.carry();
    EXPECT_EQ(between.receiver->current_state(), tcp::connection::state::broken);
    EXPECT_THAT(between.receiver->failure_reason(),
                testing::AnyOf(HasSubstr("changed, removed or added"), HasSubstr("closed")));
    EXPECT_THAT(between.taker.bodies, ElementsAre(before)) << "the put must not count as arrived";
    for (std::size_t i = 0; i < target.size(); ++i) {
        ASSERT_TRUE(target[i] == '.' || target[i] == body[i]) << "wrong data at " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(positions, tcp_sealed_change,
                         testing::Values(1, 4, 20, 40, 55, 60, 100, 30000, 100000, 190000));

TEST(tcp_sealed, bytes_that_are_left_out_repeated_or_added_end_it) {
    using alteration = std::function<void(std::string &)>;
    for (alteration const &alter : {alteration([](std::string &bytes) { bytes.erase(0, 1); }),
                                    alteration([](std::string &bytes) { bytes += bytes; }),
                                    alteration([](std::string &bytes) { bytes.insert(0, "x"); })}) {
        wire between(both_sealed);
        between.change = [&](std::string &bytes, std::size_t /*position*/) { alter(bytes); };
        between.send(payload);
        between.carry();
        between.send(payload); // completes a record that seems to be longer than it was
        between.carry();
        between.send(pattern(40000));
        between.carry();
        EXPECT_EQ(between.receiver->current_state(), tcp::connection::state::broken);
        EXPECT_LE(between.taker.bodies.size(), 1);
    }
}

TEST(tcp_sealed, a_record_that_is_sent_again_ends_it) {
    wire between(both_sealed);
    between.send(payload);
    between.carry();
    std::string const recorded = between.seen;
    between.change = [&](std::string &bytes, std::size_t /*position*/) { bytes = recorded; };
    between.send(payload);
    between.carry();
    EXPECT_EQ(between.receiver->current_state(), tcp::connection::state::broken);
    EXPECT_THAT(between.taker.bodies, ElementsAre(payload));
}

// What gathered before the connection was open leaves sealed, too.
TEST(tcp_sealed, what_waited_for_the_connection_is_sealed) {
    secure::secret const key = secure::secret::random();
    auto initiator = secure::testing::initiator_of(key);
    auto responder = secure::testing::responder_of(key);
    secure::testing::run(initiator, responder);
    auto [here, there] = connected();
    tcp::peer peer(world_rank(1), "there");
    tcp::connection held(peer);
    held.send(head_of(payload), payload.data(), payload.size(), nullptr);
    ASSERT_TRUE(held.lifecycle().open(
        std::move(here), std::make_unique<tcp::sealed_stream>(initiator.take_session_keys())));
    EXPECT_TRUE(held.lifecycle().confirm());
    std::string bytes(1000, '\0');
    ssize_t const got = ::recv(there.get(), bytes.data(), bytes.size(), MSG_PEEK);
    ASSERT_GT(got, 0);
    EXPECT_EQ(bytes.find(payload), std::string::npos);
    tcp::connection receiver(std::move(there), peer,
                             std::make_unique<tcp::sealed_stream>(responder.take_session_keys()));
    recorder taker;
    receiver.incoming().receive(taker);
    EXPECT_THAT(taker.bodies, ElementsAre(payload));
}

TEST(tcp_sealed, what_has_been_sealed_is_forgotten_when_the_connection_breaks) {
    wire between(both_sealed);
    std::string const much = pattern(std::size_t{8} << 20);
    between.send(much);
    between.sender->transmit();
    EXPECT_TRUE(between.sender->has_queued_data());
    EXPECT_EQ(between.num_busy, 1);
    between.sender->disconnect("a test");
    EXPECT_TRUE(between.source_free.is_done());
    EXPECT_EQ(between.source_free.failure, OMPX_ERR_PEER);
    EXPECT_FALSE(between.sender->has_queued_data());
    EXPECT_TRUE(between.sender->lifecycle().mark_closed());
    EXPECT_EQ(between.num_busy, 0);
}

TEST(tcp_sealed, a_source_is_free_when_it_has_been_sealed) {
    wire between(both_sealed);
    std::string body = pattern(50000);
    std::string const right = body;
    between.send(body);
    while (!between.source_free.is_done()) {
        between.sender->transmit();
    }
    std::fill(body.begin(), body.end(), 'x');
    between.carry();
    EXPECT_THAT(between.taker.bodies, ElementsAre(right));
}

} // namespace
