// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections of the TCP conduit by themselves: what comes in any pieces, and what must not come;
// and which addresses are tried in which order.
#include "transport/tcp/address.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/connection_table.h"
#include "transport/tcp/peer.h"
#include "transport/tcp/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cstring>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {

namespace tcp = diomp::transport::tcp;
using diomp::unique_fd;
using diomp::world_rank;
using testing::ElementsAre;

std::string pattern(std::size_t nbytes) {
    std::string text(nbytes, '\0');
    for (std::size_t i = 0; i < nbytes; ++i) {
        text[i] = static_cast<char>(i * 7 + i / 251);
    }
    return text;
}

/// Accepts messages.
class recorder final : public tcp::frame_handler {
public:
    std::byte *find_body_buffer(tcp::connection &on, const tcp::frame &head,
                                std::span<const std::byte> /*front*/) override {
        return head.what == tcp::kind::message ? on.incoming().scratch(head.nbytes) : nullptr;
    }
    bool handle_frame(tcp::connection & /*on*/, const tcp::frame &head,
                      std::span<const std::byte> /*front*/, const std::byte *body) override {
        if (head.what == tcp::kind::conn_ack) {
            return true;
        }
        bodies.emplace_back(reinterpret_cast<const char *>(body), head.nbytes);
        return head.what == tcp::kind::message;
    }

    std::vector<std::string> bodies;
};

class tcp_link : public testing::Test {
protected:
    tcp_link() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        here_ = ends[0];
        there_.emplace(unique_fd(ends[1]), peer_);
    }
    ~tcp_link() override { ::close(here_); }

    void write(const void *bytes, std::size_t nbytes) {
        EXPECT_EQ(::send(here_, bytes, nbytes, MSG_NOSIGNAL), static_cast<ssize_t>(nbytes));
    }
    static tcp::frame message(std::size_t nbytes) {
        tcp::frame head;
        head.what = tcp::kind::message;
        head.nbytes = nbytes;
        return head;
    }
    std::string conversation(const std::vector<std::string> &bodies) {
        std::string all;
        for (auto const &body : bodies) {
            tcp::frame const head = message(body.size());
            all.append(reinterpret_cast<const char *>(&head), sizeof(head));
            all += body;
        }
        return all;
    }

    tcp::peer peer_{world_rank(1), "there"};
    recorder taker_;
    int here_ = -1;
    std::optional<tcp::connection> there_;
};

TEST_F(tcp_link, frames_are_whole_however_they_are_cut) {
    std::vector<std::string> const bodies{"", "a", pattern(31), pattern(33), pattern(1000), ""};
    std::string const all = conversation(bodies);
    for (std::size_t const piece : {1U, 2U, 31U, 32U, 33U, 63U, 100U, 5000U}) {
        int ends[2] = {-1, -1};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        unique_fd const source(ends[0]);
        tcp::connection other(unique_fd(ends[1]), peer_);
        taker_.bodies.clear();
        for (std::size_t at = 0; at < all.size(); at += piece) {
            std::size_t const nbytes = std::min(piece, all.size() - at);
            ASSERT_EQ(::send(source.get(), all.data() + at, nbytes, 0),
                      static_cast<ssize_t>(nbytes));
            EXPECT_TRUE(other.incoming().receive(taker_));
        }
        EXPECT_EQ(taker_.bodies, bodies) << piece;
    }
}

TEST_F(tcp_link, what_one_end_sends_the_other_one_takes) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    tcp::connection sender(unique_fd(ends[0]), peer_);
    tcp::connection receiver(unique_fd(ends[1]), peer_);
    std::vector<std::string> bodies;
    diomp::transport::completion source_free;
    // Copied and not copied in turn, more than the socket holds.
    for (std::size_t i = 0; i < 200; ++i) {
        bodies.push_back(pattern(i % 3 == 0 ? 20000 + i * 100 : i * 40));
    }
    for (auto const &body : bodies) {
        sender.send(message(body.size()), body.data(), body.size(), &source_free);
    }
    EXPECT_TRUE(sender.has_queued_data());
    EXPECT_FALSE(source_free.is_done());
    for (int round = 0; round < 100000 && taker_.bodies.size() < bodies.size(); ++round) {
        sender.transmit();
        receiver.incoming().receive(taker_);
    }
    EXPECT_EQ(taker_.bodies, bodies);
    EXPECT_FALSE(sender.has_queued_data());
    EXPECT_EQ(sender.copied_bytes(), 0);
    EXPECT_TRUE(source_free.is_done());
    EXPECT_EQ(source_free.failure, 0);
}

TEST_F(tcp_link, sources_are_free_when_the_connection_breaks) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    tcp::connection sender(unique_fd(ends[0]), peer_);
    std::string const much = pattern(std::size_t{8} << 20);
    diomp::transport::completion source_free;
    sender.send(message(much.size()), much.data(), much.size(), &source_free);
    EXPECT_FALSE(source_free.is_done());
    ::close(ends[1]);
    sender.transmit();
    EXPECT_EQ(sender.current_state(), tcp::connection::state::broken);
    EXPECT_TRUE(source_free.is_done());
    EXPECT_EQ(source_free.failure, OMPX_ERR_PEER);
    EXPECT_EQ(sender.copied_bytes(), 0);
    sender.send(message(1), "x", 1, nullptr); // is lost, like the peer
    EXPECT_FALSE(sender.has_queued_data());
}

/// Two connected descriptors that do not block.
std::pair<unique_fd, unique_fd> connected() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

TEST_F(tcp_link, nothing_leaves_before_it_is_open_and_released) {
    auto [here, there] = connected();
    tcp::connection sender(peer_);
    tcp::connection receiver(std::move(there), peer_);
    std::string const large = pattern(20000);
    diomp::transport::completion source_free;
    sender.send(message(1), "a", 1, nullptr);
    sender.send(message(large.size()), large.data(), large.size(), &source_free);
    EXPECT_FALSE(sender.transmit());
    EXPECT_FALSE(sender.incoming().receive(taker_));
    EXPECT_EQ(sender.current_state(), tcp::connection::state::opening);
    EXPECT_FALSE(sender.has_queued_data()) << "what may not leave does not wait for room";
    EXPECT_TRUE(sender.lifecycle().open(std::move(here)));
    EXPECT_EQ(sender.current_state(), tcp::connection::state::deferred);
    EXPECT_FALSE(sender.transmit());
    EXPECT_FALSE(receiver.incoming().receive(taker_));
    EXPECT_FALSE(source_free.is_done());

    EXPECT_TRUE(sender.lifecycle().confirm());
    while (taker_.bodies.size() < 2) {
        receiver.incoming().receive(taker_);
        sender.transmit();
    }
    EXPECT_THAT(taker_.bodies, ElementsAre("a", large));
    EXPECT_TRUE(source_free.is_done());
    EXPECT_FALSE(sender.lifecycle().confirm()) << "twice";
    EXPECT_FALSE(sender.lifecycle().open(unique_fd())) << "twice";
}

TEST_F(tcp_link, sources_are_free_when_it_cannot_be_opened) {
    tcp::connection sender(peer_);
    std::string const large = pattern(20000);
    diomp::transport::completion source_free;
    sender.send(message(large.size()), large.data(), large.size(), &source_free);
    sender.disconnect("no way");
    EXPECT_TRUE(source_free.is_done());
    EXPECT_EQ(source_free.failure, OMPX_ERR_PEER);
    EXPECT_FALSE(sender.lifecycle().open(unique_fd()));
    EXPECT_EQ(sender.failure_reason(), "no way");
}

TEST_F(tcp_link, the_socket_of_the_peer_replaces_an_own_one_that_is_not_used) {
    for (bool const is_open : {false, true}) {
        auto [here, there] = connected();
        auto [other_here, other_there] = connected();
        tcp::connection held(peer_);
        tcp::connection receiver(std::move(other_there), peer_);
        tcp::connection unused(std::move(there));
        std::string const large = pattern(20000);
        diomp::transport::completion source_free;
        taker_.bodies.clear();
        if (is_open) {
            EXPECT_TRUE(held.lifecycle().open(std::move(here)));
        }
        here.reset();
        held.send(message(1), "a", 1, nullptr);
        held.send(message(large.size()), large.data(), large.size(), &source_free);
        held.send(message(1), "b", 1, nullptr);
        EXPECT_TRUE(held.lifecycle().adopt(std::move(other_here)));
        EXPECT_EQ(held.current_state(), tcp::connection::state::accepted);
        held.send(message(1), "c", 1, nullptr);
        held.transmit();
        receiver.incoming().receive(taker_);
        EXPECT_TRUE(taker_.bodies.empty()) << "the peer has not said that it uses this socket";
        EXPECT_TRUE(held.lifecycle().confirm());
        while (taker_.bodies.size() < 4) {
            held.transmit();
            receiver.incoming().receive(taker_);
        }
        EXPECT_THAT(taker_.bodies, ElementsAre("a", large, "b", "c"));
        EXPECT_TRUE(source_free.is_done());
        EXPECT_EQ(source_free.failure, 0);
        EXPECT_EQ(held.copied_bytes(), 0);
        EXPECT_FALSE(held.lifecycle().adopt(unique_fd())) << "it is in use";
        unused.incoming().receive(taker_);
        EXPECT_EQ(unused.current_state(), tcp::connection::state::broken)
            << "its other end is gone";
        EXPECT_FALSE(unused.lifecycle().reuse(unique_fd())) << "its failure has not been handled";
        EXPECT_TRUE(unused.lifecycle().mark_closed());
        EXPECT_TRUE(unused.lifecycle().reuse(unique_fd()));
        EXPECT_EQ(unused.current_state(), tcp::connection::state::redundant);
    }
}

TEST_F(tcp_link, one_that_has_failed_takes_no_other_socket) {
    auto [here, there] = connected();
    there_->disconnect("gone");
    EXPECT_FALSE(there_->lifecycle().adopt(std::move(here)));
    EXPECT_TRUE(there_->lifecycle().mark_closed());
    EXPECT_FALSE(there_->lifecycle().adopt(std::move(there)));
    EXPECT_FALSE(there_->lifecycle().reuse(unique_fd())) << "it has a target";
}

/// Two ends of a connection that close it; the handler does what frame_dispatcher does.
class closing_link : public testing::Test, public tcp::frame_handler {
protected:
    using state = tcp::connection::state;

    closing_link() { connect(); }

    void connect() {
        int ends[2] = {-1, -1};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        here_ = unique_fd(ends[0]);
        there_ = unique_fd(ends[1]);
    }
    void open_both() {
        lower_.emplace(std::move(here_), to_higher_);
        higher_.emplace(std::move(there_), to_lower_);
    }
    std::byte *find_body_buffer(tcp::connection &on, const tcp::frame &head,
                                std::span<const std::byte> /*front*/) override {
        return on.incoming().scratch(head.nbytes);
    }
    bool handle_frame(tcp::connection &on, const tcp::frame &head,
                      std::span<const std::byte> /*front*/, const std::byte *body) override {
        if (on.current_state() == state::accepted) {
            static_cast<void>(on.lifecycle().confirm());
        }
        switch (head.what) {
        case tcp::kind::conn_ack:
            on.send({.what = tcp::kind::conn_confirm}, nullptr, 0, nullptr);
            return true;
        case tcp::kind::conn_confirm:
            return true;
        case tcp::kind::close_request:
            return on.lifecycle().reply_to_close(&on == &*lower_, may_close_);
        case tcp::kind::close_ack:
            return on.lifecycle().end_close();
        case tcp::kind::close_nack:
            return on.lifecycle().resume();
        default:
            received_.emplace_back(reinterpret_cast<const char *>(body), head.nbytes);
            return head.what == tcp::kind::message;
        }
    }
    void send(tcp::connection &from, const std::string &text) {
        from.send({.what = tcp::kind::message, .nbytes = text.size()}, text.data(), text.size(),
                  nullptr);
    }
    /// Progress of both sides, until nothing moves.
    void advance() {
        for (int i = 0; i < 10; ++i) {
            for (auto *each : {&*lower_, &*higher_}) {
                each->transmit();
                each->incoming().receive(*this);
            }
        }
    }
    std::pair<state, state> states() { return {lower_->current_state(), higher_->current_state()}; }

    unique_fd here_;
    unique_fd there_;
    tcp::peer to_lower_{world_rank(1), "lower"};
    tcp::peer to_higher_{world_rank(2), "higher"};
    std::optional<tcp::connection> lower_;
    std::optional<tcp::connection> higher_;
    bool may_close_ = true;
    std::vector<std::string> received_;
};

TEST_F(closing_link, an_idle_one_is_closed_and_opened_again) {
    open_both();
    send(*lower_, "first");
    advance();
    ASSERT_TRUE(lower_->lifecycle().request_close());
    EXPECT_FALSE(lower_->lifecycle().request_close()) << "twice";
    EXPECT_FALSE(lower_->lifecycle().adopt(unique_fd())) << "the peer has not agreed";
    send(*lower_, "after the request");
    advance();
    EXPECT_EQ(states(), std::pair(state::ended, state::yielded));
    EXPECT_TRUE(lower_->lifecycle().needs_release());
    EXPECT_FALSE(higher_->lifecycle().needs_release()) << "the side that has requested it closes";
    send(*higher_, "after the reply");
    EXPECT_THAT(received_, ElementsAre("first"));
    ASSERT_TRUE(lower_->lifecycle().release());
    EXPECT_FALSE(lower_->lifecycle().release()) << "twice";
    EXPECT_EQ(lower_->stream().fd(), -1);
    EXPECT_EQ(lower_->describe_path(), "not connected");
    EXPECT_TRUE(lower_->lifecycle().needs_release()) << "data waits for another socket";
    advance();
    EXPECT_EQ(states(), std::pair(state::dormant, state::ended));
    ASSERT_TRUE(higher_->lifecycle().release());

    connect();
    ASSERT_TRUE(lower_->lifecycle().reopen());
    EXPECT_FALSE(lower_->lifecycle().reopen()) << "twice";
    ASSERT_TRUE(lower_->lifecycle().open(std::move(here_)));
    ASSERT_TRUE(lower_->lifecycle().confirm());
    ASSERT_TRUE(higher_->lifecycle().adopt(std::move(there_)));
    advance();
    EXPECT_THAT(received_,
                testing::UnorderedElementsAre("first", "after the request", "after the reply"));
    EXPECT_EQ(states(), std::pair(state::connected, state::connected));
}

TEST_F(closing_link, the_socket_of_a_peer_that_is_back_replaces_one_that_is_yielded) {
    open_both();
    ASSERT_TRUE(lower_->lifecycle().request_close());
    advance();
    ASSERT_TRUE(lower_->lifecycle().release());
    ASSERT_EQ(higher_->current_state(), state::yielded) << "has not seen the end yet";
    connect();
    ASSERT_TRUE(lower_->lifecycle().reopen());
    ASSERT_TRUE(lower_->lifecycle().open(std::move(here_)));
    ASSERT_TRUE(lower_->lifecycle().confirm());
    ASSERT_TRUE(higher_->lifecycle().adopt(std::move(there_)));
    send(*lower_, "x");
    send(*higher_, "y");
    advance();
    EXPECT_THAT(received_, testing::UnorderedElementsAre("x", "y"));
}

// A rank that opens a socket at the same time as its peer gives it up when it gets the peer's; the
// peer may look at it much later, when the connection has been closed meanwhile.
TEST_F(closing_link, a_socket_that_the_peer_has_given_up_takes_nothing) {
    open_both();
    ASSERT_TRUE(lower_->lifecycle().request_close());
    advance();
    ASSERT_TRUE(lower_->lifecycle().release());
    auto [here, there] = connected();
    ASSERT_TRUE(lower_->lifecycle().adopt(std::move(here)));
    send(*lower_, "not lost");
    there.reset();
    lower_->transmit();
    lower_->incoming().receive(*this);
    ASSERT_EQ(lower_->current_state(), state::ended);
    ASSERT_TRUE(lower_->lifecycle().release());
    EXPECT_TRUE(lower_->lifecycle().needs_release()) << "data waits for another socket";
    // One that is used replaces one that is not.
    auto [other_here, other_there] = connected();
    ASSERT_TRUE(lower_->lifecycle().adopt(std::move(other_here)));
    connect();
    EXPECT_FALSE(lower_->lifecycle().adopt(std::move(here_))) << "the first one may be used yet";
    other_there.reset();
    connect();
    ASSERT_TRUE(lower_->lifecycle().adopt(std::move(here_)));
    ASSERT_TRUE(higher_->lifecycle().adopt(std::move(there_)));
    advance();
    EXPECT_THAT(received_, ElementsAre("not lost"));
    EXPECT_EQ(states(), std::pair(state::connected, state::connected));
}

TEST_F(closing_link, of_two_requests_that_of_the_lower_rank_counts) {
    open_both();
    ASSERT_TRUE(higher_->lifecycle().request_close());
    ASSERT_TRUE(lower_->lifecycle().request_close());
    advance();
    EXPECT_EQ(states(), std::pair(state::ended, state::yielded));
}

TEST_F(closing_link, a_refusal_changes_nothing) {
    open_both();
    may_close_ = false;
    ASSERT_TRUE(lower_->lifecycle().request_close());
    send(*lower_, "a");
    EXPECT_TRUE(received_.empty());
    advance();
    EXPECT_EQ(states(), std::pair(state::connected, state::connected));
    EXPECT_THAT(received_, ElementsAre("a"));
    // Both request it, and the higher rank's data waits behind its request.
    may_close_ = true;
    received_.clear();
    ASSERT_TRUE(higher_->lifecycle().request_close());
    ASSERT_TRUE(lower_->lifecycle().request_close());
    send(*higher_, "b");
    advance();
    EXPECT_EQ(states(), std::pair(state::connected, state::connected));
    EXPECT_THAT(received_, ElementsAre("b"));
}

TEST_F(closing_link, one_with_data_is_not_closed) {
    open_both();
    std::string const much = pattern(std::size_t{8} << 20);
    send(*lower_, much);
    EXPECT_FALSE(lower_->lifecycle().request_close());
    EXPECT_EQ(lower_->current_state(), state::connected);
}

TEST_F(closing_link, replies_without_a_request_are_invalid) {
    open_both();
    for (tcp::kind const what : {tcp::kind::close_ack, tcp::kind::close_nack}) {
        higher_->send({.what = what}, nullptr, 0, nullptr);
        advance();
        EXPECT_EQ(lower_->current_state(), state::broken);
        connect();
        open_both();
    }
}

TEST_F(closing_link, the_end_of_a_peer_before_its_reply_is_a_failure) {
    open_both();
    ASSERT_TRUE(lower_->lifecycle().request_close());
    higher_.reset();
    while (lower_->current_state() == state::closing) {
        lower_->incoming().receive(*this);
    }
    EXPECT_EQ(lower_->current_state(), state::broken);
}

// The lower rank's own connection counts; the other one is there until its other end closes it.
TEST_F(tcp_link, no_frame_may_come_where_another_connection_counts) {
    auto [here, there] = connected();
    tcp::connection unused(std::move(there));
    std::string const all = conversation({"hello"});
    ASSERT_EQ(::send(here.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    unused.incoming().receive(taker_);
    EXPECT_TRUE(taker_.bodies.empty());
    EXPECT_EQ(unused.current_state(), tcp::connection::state::broken);
}

TEST_F(tcp_link, a_failure_is_handled_once) {
    EXPECT_FALSE(there_->lifecycle().mark_closed()) << "it is connected";
    there_->disconnect("first");
    there_->disconnect("second");
    EXPECT_EQ(there_->failure_reason(), "first");
    EXPECT_TRUE(there_->lifecycle().mark_closed());
    EXPECT_EQ(there_->current_state(), tcp::connection::state::closed);
    EXPECT_FALSE(there_->lifecycle().mark_closed());
}

TEST_F(tcp_link, the_table_polls_open_connections) {
    tcp::connection_table table(2);
    ASSERT_TRUE(table.open().ok());
    auto const count = [&] {
        int num = 0;
        static_cast<void>(table.poll([&](void *) { return ++num > 0; }));
        return num;
    };
    auto [here, there] = connected();
    tcp::connection &first = table.add(std::make_unique<tcp::connection>(std::move(there), peer_));
    EXPECT_EQ(table.sole(), nullptr) << "not watched yet";
    table.watch(first);
    EXPECT_EQ(table.sole(), &first);
    EXPECT_EQ(count(), 0);
    ASSERT_EQ(::send(here.get(), "x", 1, 0), 1);
    EXPECT_EQ(count(), 1);
    EXPECT_TRUE(table.has_capacity());
    tcp::connection &opening = table.add(std::make_unique<tcp::connection>(peer_));
    EXPECT_FALSE(table.has_capacity());
    table.unwatch(opening); // has no descriptor
    EXPECT_EQ(table.sole(), &first);
    table.unwatch(first);
    EXPECT_EQ(table.sole(), nullptr);
    EXPECT_EQ(count(), 0);
}

TEST_F(tcp_link, the_table_closes_what_has_not_been_used) {
    tcp::connection_table table(3);
    ASSERT_TRUE(table.open().ok());
    EXPECT_FALSE(table.close_idle_one()) << "there is none";
    std::array<tcp::peer, 2> peers{tcp::peer(world_rank(1)), tcp::peer(world_rank(2))};
    std::vector<unique_fd> others;
    std::vector<tcp::connection *> made;
    for (tcp::peer &each : peers) {
        auto [here, there] = connected();
        others.push_back(std::move(there));
        made.push_back(&table.add(std::make_unique<tcp::connection>(std::move(here), each)));
        table.watch(*made.back());
    }
    EXPECT_EQ(table.num_sockets(), 2);
    peers[0].note_use();
    EXPECT_TRUE(table.close_idle_one());
    EXPECT_EQ(made[0]->current_state(), tcp::connection::state::connected) << "was used";
    EXPECT_EQ(made[1]->current_state(), tcp::connection::state::closing);
    diomp::transport::completion done;
    std::uint64_t word = 0;
    auto const get = peers[0].begin_get(&word, sizeof(word), done);
    EXPECT_FALSE(table.close_idle_one()) << "a get waits";
    peers[0].end_get(get);
    peers[0].note_use();
    EXPECT_TRUE(table.close_idle_one()) << "in the second round";
    EXPECT_EQ(made[0]->current_state(), tcp::connection::state::closing);
    EXPECT_FALSE(table.close_idle_one());
}

TEST_F(tcp_link, redundant_connections_take_the_place_of_closed_ones) {
    tcp::connection_table table(1);
    ASSERT_TRUE(table.open().ok());
    for (int i = 0; i < 5; ++i) {
        auto [here, there] = connected();
        ASSERT_TRUE(table.add_redundant(std::move(here)));
        EXPECT_EQ(table.all().size(), 1);
        EXPECT_EQ(table.num_sockets(), 1);
        EXPECT_FALSE(table.add_redundant(unique_fd())) << "there is no space";
        there.reset();
        table.all()[0]->incoming().receive(taker_);
        ASSERT_TRUE(table.all()[0]->lifecycle().mark_closed());
        table.unwatch(*table.all()[0]);
    }
}

TEST_F(tcp_link, the_first_messages_of_a_round_leave_alone) {
    EXPECT_TRUE(peer_.may_transmit_immediately(7));
    EXPECT_TRUE(peer_.may_transmit_immediately(7));
    EXPECT_FALSE(peer_.may_transmit_immediately(7));
    EXPECT_FALSE(peer_.may_transmit_immediately(7));
    EXPECT_TRUE(peer_.may_transmit_immediately(8));
}

// Who polls asks the system which connections have something only where another thread writes.
TEST_F(tcp_link, it_knows_whether_another_thread_has_written_last) {
    auto [here, there] = connected();
    tcp::connection sender(std::move(here), peer_);
    EXPECT_FALSE(sender.writer().is_used_by_others()) << "by no thread yet";
    std::thread([&] { sender.transmit(); }).join();
    EXPECT_TRUE(sender.writer().is_used_by_others());
    sender.transmit();
    EXPECT_FALSE(sender.writer().is_used_by_others());
}

// While one thread writes, another one's word is enough.
/// Until the threads, each of which counts itself done, have sent everything.
void take_all(tcp::connection &sender, tcp::connection &receiver, tcp::frame_handler &taker,
              std::vector<std::thread> &threads, const std::atomic<int> &num_done) {
    while (num_done < static_cast<int>(threads.size()) || sender.has_queued_data()) {
        receiver.incoming().receive(taker);
        sender.transmit();
    }
    for (std::thread &each : threads) {
        each.join();
    }
    while (receiver.incoming().receive(taker)) {
    }
}

TEST_F(tcp_link, what_many_threads_send_arrives_once_and_in_order_of_each) {
    auto [here, there] = connected();
    tcp::connection sender(std::move(here), peer_);
    tcp::connection receiver(std::move(there), peer_);
    constexpr int num_threads = 4;
    constexpr int each_sends = 500;
    std::vector<std::thread> threads;
    std::atomic<int> num_done{0};
    for (int thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (int i = 0; i < each_sends; ++i) {
                std::string const text = std::to_string(thread) + " " + std::to_string(i);
                sender.send(message(text.size()), text.data(), text.size(), nullptr);
                sender.transmit();
            }
            ++num_done;
        });
    }
    take_all(sender, receiver, taker_, threads, num_done);
    std::array<int, num_threads> next{};
    for (std::string const &body : taker_.bodies) {
        std::size_t cut = 0;
        int const thread = std::stoi(body, &cut);
        EXPECT_EQ(std::stoi(body.substr(cut)), next[static_cast<std::size_t>(thread)]++);
    }
    EXPECT_THAT(next, testing::Each(each_sends));
}

/// Counts puts; a flush must name exactly those before it.
class put_counter final : public tcp::frame_handler {
public:
    std::byte *find_body_buffer(tcp::connection &on, const tcp::frame &head,
                                std::span<const std::byte> /*front*/) override {
        return on.incoming().scratch(head.nbytes);
    }
    bool handle_frame(tcp::connection & /*on*/, const tcp::frame &head,
                      std::span<const std::byte> /*front*/, const std::byte * /*body*/) override {
        num_puts += head.what == tcp::kind::put ? 1 : 0;
        if (head.what == tcp::kind::flush) {
            ++num_flushes;
            EXPECT_EQ(head.number, num_puts);
        }
        return true;
    }

    std::uint64_t num_puts = 0;
    std::uint64_t num_flushes = 0;
};

TEST_F(tcp_link, a_flush_that_a_put_brings_covers_the_puts_of_all_threads_before_it) {
    auto [here, there] = connected();
    tcp::connection sender(std::move(here), peer_);
    tcp::connection receiver(std::move(there), peer_);
    constexpr int num_threads = 3;
    constexpr int each_sends = 400;
    std::string const data = pattern(9000);
    diomp::transport::completion source_free;
    std::atomic<std::uint64_t> num_puts{0};
    std::atomic<int> num_done{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (int i = 0; i < each_sends; ++i) {
                bool const brings_flush = (i + thread) % 2 == 0;
                tcp::frame const head{.what = tcp::kind::put, .nbytes = data.size()};
                std::uint64_t const asked =
                    sender.send_put(head, data.data(), source_free, num_puts, brings_flush);
                EXPECT_EQ(asked != 0, brings_flush);
                sender.transmit();
            }
            ++num_done;
        });
    }
    put_counter counter;
    take_all(sender, receiver, counter, threads, num_done);
    EXPECT_EQ(counter.num_puts, num_threads * each_sends);
    EXPECT_EQ(counter.num_flushes, num_threads * each_sends / 2);
    EXPECT_EQ(num_puts, counter.num_puts);
    EXPECT_TRUE(source_free.is_done());
}

TEST(tcp_peer, puts_bring_their_flush_only_after_puts_that_were_flushed_one_by_one) {
    tcp::peer there(world_rank(1), "there");
    auto const put = [&] { return ++there.num_puts(); };
    std::uint64_t asked = 0;
    diomp::transport::completion done;
    EXPECT_FALSE(there.should_piggyback_flush()); // nothing is known
    put();
    EXPECT_TRUE(there.begin_flush(done, asked));
    there.end_flush(asked);
    ASSERT_TRUE(there.should_piggyback_flush());
    // The put asks; who waits for it later does not.
    there.note_flush_requested(put());
    EXPECT_FALSE(there.should_piggyback_flush()); // one is on its way
    EXPECT_FALSE(there.begin_flush(done, asked));
    EXPECT_EQ(asked, 2);
    EXPECT_FALSE(done.is_done());
    there.end_flush(asked);
    EXPECT_TRUE(done.is_done());
    // The answer may come before anybody waits: then there is nothing to wait for.
    ASSERT_TRUE(there.should_piggyback_flush());
    there.note_flush_requested(put());
    there.end_flush(3);
    EXPECT_FALSE(there.begin_flush(done, asked));
    EXPECT_TRUE(done.is_done());
    EXPECT_TRUE(there.should_piggyback_flush());
    // A put behind one that has asked must be asked for; then two had one flush.
    there.note_flush_requested(put());
    put();
    EXPECT_TRUE(there.begin_flush(done, asked));
    EXPECT_EQ(asked, 5);
    there.end_flush(4);
    EXPECT_FALSE(done.is_done());
    there.end_flush(5);
    EXPECT_TRUE(done.is_done());
    EXPECT_FALSE(there.should_piggyback_flush());
}

TEST_F(tcp_link, a_frame_that_no_rank_sends_breaks_it) {
    std::string all = conversation({"good"});
    tcp::frame head;
    head.what = static_cast<tcp::kind>(200);
    head.nbytes = std::uint64_t{1} << 40;
    all.append(reinterpret_cast<const char *>(&head), sizeof(head));
    write(all.data(), all.size());
    there_->incoming().receive(taker_);
    EXPECT_THAT(taker_.bodies, ElementsAre("good"));
    EXPECT_EQ(there_->current_state(), tcp::connection::state::broken);
    EXPECT_EQ(there_->failure_reason(), "it has sent an invalid frame");
}

TEST_F(tcp_link, a_closed_connection_is_noticed_after_what_it_brought) {
    std::string const all = conversation({"last words"});
    write(all.data(), all.size());
    ::shutdown(here_, SHUT_WR);
    while (there_->current_state() == tcp::connection::state::connected) {
        there_->incoming().receive(taker_);
    }
    EXPECT_THAT(taker_.bodies, ElementsAre("last words"));
    EXPECT_EQ(there_->failure_reason(), "the connection has been closed");
}

/// A connection to ourselves, and what the other end has accepted.
struct loopback_pair {
    explicit loopback_pair(const tcp::tuning &how) {
        std::uint16_t port = 0;
        auto listener = tcp::listen(port, how);
        EXPECT_TRUE(listener.ok());
        in6_addr loopback{};
        ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &loopback);
        auto started = tcp::start_connecting(loopback, port, how);
        EXPECT_TRUE(started.ok());
        opened = started.take();
        pollfd waiting{listener.value().get(), POLLIN, 0};
        EXPECT_EQ(::poll(&waiting, 1, 10000), 1);
        accepted = unique_fd(::accept(listener.value().get(), nullptr, nullptr));
    }
    unique_fd opened;
    unique_fd accepted;
};

std::string system_congestion() {
    unique_fd const probe(::socket(AF_INET, SOCK_STREAM, 0));
    return tcp::congestion_of(probe.get());
}

TEST(tcp_tuning, near_connections_are_not_paced_and_others_are_the_systems) {
    auto how = tcp::tuning::create(0, "auto");
    ASSERT_TRUE(how.ok());
    loopback_pair const pair(how.value());
    std::string const own = system_congestion();
    for (int const fd : {pair.opened.get(), pair.accepted.get()}) {
        how.value().adapt(fd);
        if (own.starts_with("bbr")) {
            EXPECT_THAT(tcp::congestion_of(fd), testing::AnyOf("cubic", "reno"));
        } else {
            EXPECT_EQ(tcp::congestion_of(fd), own);
        }
        int on = 0;
        socklen_t size = sizeof(on);
        ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size);
        EXPECT_NE(on, 0);
        int room = 0;
        size = sizeof(room);
        ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size);
        EXPECT_LE(room, 2 * 1024 * 1024);
    }
}

TEST(tcp_tuning, far_connections_are_left_to_the_system) {
    auto how = tcp::tuning::create(0, "auto", 0);
    ASSERT_TRUE(how.ok());
    loopback_pair const pair(how.value());
    for (int const fd : {pair.opened.get(), pair.accepted.get()}) {
        how.value().adapt(fd);
        EXPECT_EQ(tcp::congestion_of(fd), system_congestion());
    }
}

TEST(tcp_tuning, what_the_user_wants_is_taken_or_refused_with_a_remedy) {
    auto how = tcp::tuning::create(4096, "reno");
    ASSERT_TRUE(how.ok()) << "every system has it";
    loopback_pair const pair(how.value());
    how.value().adapt(pair.accepted.get());
    EXPECT_EQ(tcp::congestion_of(pair.opened.get()), "reno");
    EXPECT_EQ(tcp::congestion_of(pair.accepted.get()), "reno");

    auto refused = tcp::tuning::create(0, "no such thing");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.failure().message(), testing::HasSubstr("'no such thing'"));
    EXPECT_EQ(tcp::congestion_of(-1), "");
}

diomp::transport::address make(const char *number, int prefix_bits) {
    diomp::transport::address made;
    EXPECT_EQ(::inet_pton(AF_INET6, number, &made.number), 1) << number;
    made.prefix_bits = prefix_bits;
    return made;
}

std::vector<std::string> ways(const tcp::address_blob &there, const tcp::address_blob &here) {
    std::vector<std::string> found;
    for (in6_addr const &each : tcp::candidate_addresses(there, here)) {
        found.push_back(diomp::transport::to_text(each));
    }
    return found;
}

TEST(tcp_address, those_in_a_network_of_ours_come_first) {
    tcp::address_blob const here{
        {"a"}, 1, {make("::ffff:10.1.0.1", 112), make("2001:db8:5::1", 64)}};
    tcp::address_blob const there{{"b"},
                                  2,
                                  {make("::ffff:192.168.3.4", 120), make("::ffff:10.1.200.7", 112),
                                   make("2001:db8:6::2", 64), make("2001:db8:5::2", 64)}};
    EXPECT_THAT(ways(there, here),
                ElementsAre("10.1.200.7", "2001:db8:5::2", "192.168.3.4", "2001:db8:6::2"));
}

TEST(tcp_address, a_rank_of_the_same_host_is_reached_by_loopback_first) {
    tcp::address_blob const address_blob{{"a"}, 1, {make("::ffff:10.1.0.1", 112)}};
    EXPECT_THAT(ways(address_blob, address_blob), ElementsAre("127.0.0.1", "10.1.0.1"));
}

// A bridge of containers has the same address on every host; another program may listen there.
TEST(tcp_address, addresses_that_lead_to_this_host_are_not_tried_for_another_one) {
    tcp::address_blob const here{
        {"a"}, 1, {make("::ffff:10.1.0.1", 112), make("::ffff:172.17.0.1", 112)}};
    tcp::address_blob const there{{"b"},
                                  2,
                                  {make("::ffff:172.17.0.1", 112), make("::ffff:127.0.0.1", 104),
                                   make("::1", 128), make("::ffff:10.1.0.2", 112)}};
    EXPECT_THAT(ways(there, here), ElementsAre("10.1.0.2"));
    tcp::address_blob same_host = there;
    same_host.host.node = "a";
    EXPECT_THAT(ways(same_host, here), testing::Contains("172.17.0.1"));
}

// A container may have the network of its host, but a boot id of its own.
TEST(tcp_address, a_rank_with_the_network_of_this_host_is_reached_as_one_of_this_host) {
    tcp::address_blob const here{{"a", "0123"}, 1, {make("::ffff:10.1.0.1", 112)}};
    tcp::address_blob there{{"b", "0123"}, 2, {make("::ffff:10.1.0.1", 112)}};
    EXPECT_THAT(ways(there, here), ElementsAre("127.0.0.1", "10.1.0.1"));
    there.host.network = "4567";
    EXPECT_THAT(ways(there, here), ElementsAre());
    there.host.network = diomp::transport::unknown_network;
    EXPECT_THAT(ways(there, tcp::address_blob{{"a"}, 1, there.addresses}), ElementsAre());
}

TEST(tcp_address, the_identity_of_a_network_depends_on_its_interfaces) {
    using diomp::transport::network_interface;
    auto const network_identity = [](std::initializer_list<network_interface> own) {
        return diomp::transport::identify_host(own).network;
    };
    network_interface const loopback{"lo", true, true, "", {make("::ffff:127.0.0.1", 104)}};
    network_interface eth0{"eth0", true, false, "\x02\x01", {make("::ffff:10.1.0.1", 112)}};
    network_interface const unused{"veth1", true, false, "\x02\x02", {}};
    EXPECT_EQ(network_identity({loopback, unused}), diomp::transport::unknown_network);
    std::string const one = network_identity({loopback, eth0});
    EXPECT_EQ(one.size(), 16U);
    EXPECT_EQ(network_identity({unused, eth0, loopback}), one);
    eth0.hardware_address[0] = '\x03';
    EXPECT_NE(network_identity({loopback, eth0}), one);
}

// The bridge may be down here, or not be offered, and be up at the other host.
TEST(tcp_address, addresses_of_interfaces_that_are_not_offered_are_not_tried_either) {
    tcp::address_blob const here{{"a"}, 1, {make("::ffff:10.1.0.1", 112)}};
    tcp::address_blob const there{
        {"b"}, 2, {make("::ffff:172.17.0.1", 112), make("::ffff:10.1.0.2", 112)}};
    in6_addr const bridge = make("::ffff:172.17.0.1", 112).number;
    std::vector<std::string> found;
    for (in6_addr const &each : tcp::candidate_addresses(there, here, {&bridge, 1})) {
        found.push_back(diomp::transport::to_text(each));
    }
    EXPECT_THAT(found, ElementsAre("10.1.0.2"));
    auto own = diomp::transport::own_interfaces();
    ASSERT_TRUE(own.ok());
    auto const is_loopback = [](const in6_addr &each) {
        return diomp::transport::to_text(each) == "127.0.0.1";
    };
    EXPECT_THAT(tcp::all_addresses(own.value()), testing::Contains(testing::Truly(is_loopback)));
}

TEST(tcp_address, a_listener_on_loopback_is_not_reached_by_other_addresses) {
    std::uint16_t port = 0;
    auto listener = tcp::listen(port, {}, tcp::listen_scope::loopback);
    ASSERT_TRUE(listener.ok());
    sockaddr_in bound{};
    socklen_t size = sizeof(bound);
    ASSERT_EQ(::getsockname(listener.value().get(), reinterpret_cast<sockaddr *>(&bound), &size),
              0);
    EXPECT_EQ(bound.sin_family, AF_INET);
    EXPECT_EQ(bound.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

TEST(tcp_address, an_address_blob_survives_the_launcher) {
    tcp::address_blob const address_blob{
        {"host-1/boot", "0123"}, 65535, {make("::ffff:10.1.0.1", 112), make("2001:db8::1", 64)}};
    tcp::address_blob const read = tcp::decode_address_blob(tcp::encode_address_blob(address_blob));
    EXPECT_EQ(read.host.node, address_blob.host.node);
    EXPECT_EQ(read.host.network, address_blob.host.network);
    EXPECT_EQ(read.port, address_blob.port);
    EXPECT_EQ(tcp::encode_address_blob(read), tcp::encode_address_blob(address_blob));
}

TEST(tcp_address, interfaces_that_do_not_exist_are_errors) {
    auto own = diomp::transport::own_interfaces();
    ASSERT_TRUE(own.ok());
    auto found = tcp::own_addresses(own.value(), "lo,nonsense0");
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.failure().message(), testing::HasSubstr("'nonsense0'"));
    EXPECT_THAT(found.failure().remedy(), testing::HasSubstr("DIOMP_TCP_INTERFACES"));
}

TEST(tcp_address, loopback_is_taken_only_if_named) {
    auto own = diomp::transport::own_interfaces();
    ASSERT_TRUE(own.ok());
    auto named = tcp::own_addresses(own.value(), "lo");
    auto all = tcp::own_addresses(own.value(), "");
    ASSERT_TRUE(named.ok() && all.ok());
    auto const is_loopback = [](const diomp::transport::address &each) {
        return diomp::transport::to_text(each.number) == "127.0.0.1";
    };
    EXPECT_THAT(named.value(), testing::Contains(testing::Truly(is_loopback)));
    EXPECT_THAT(all.value(), testing::Not(testing::Contains(testing::Truly(is_loopback))));
}

} // namespace
