// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process that listens, with clients that ask for a device and do no more, and with connections
// that prove nothing.
#include "base/secure/complete_handshake.h"
#include "base/secure/sockets.h"
#include "offload/remote/control_pair.h"
#include "offload/service/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace diomp::offload::service {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using diomp_test::a_token;
using remote::control_connection;
using remote::frame;
using secure::handshake;
using testing::HasSubstr;

constexpr double limit_s = 20;

int serve_until(int stop_fd, unique_fd listener, const server_options &options) {
    server lender(std::move(listener), a_token(), options);
    return lender.run(stop_fd) ? 0 : 1;
}

class server_test : public testing::Test {
protected:
    ~server_test() override {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    void start(int devices, const std::function<void(server_options &)> &change = {}) {
        auto listener = remote::listen_at("127.0.0.1", 0);
        ASSERT_TRUE(listener.ok());
        port_ = remote::port_of(listener.value().get()).value();
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        stop_ = unique_fd(ends[1]);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::alarm(60); // whatever happens, no process is left
            stop_.reset();
            server_options options;
            for (int i = 0; i < devices; ++i) {
                lent_device device;
                device.description.num_devices = static_cast<std::uint32_t>(devices);
                device.description.memory_bytes = 1 << 20;
                device.description.kind = "cpu";
                device.description.name = "device " + std::to_string(i);
                options.devices.push_back(device);
            }
            if (change) {
                change(options);
            }
            std::_Exit(serve_until(ends[0], listener.take(), options));
        }
        ::close(ends[0]);
    }

    [[nodiscard]] result<control_connection> try_to_connect(std::uint32_t device,
                                                            const char *token = "a token") const {
        return control_connection::connect("127.0.0.1", port_, secure::secret::from_text(token),
                                           device, limit_s);
    }
    [[nodiscard]] control_connection connect(std::uint32_t device = 0) const {
        auto link = try_to_connect(device);
        EXPECT_TRUE(link.ok()) << link.failure().message();
        return link.take();
    }
    /// A connection without a handshake.
    [[nodiscard]] unique_fd connect_raw() const {
        unique_fd made = secure::testing::connect_to(static_cast<std::uint16_t>(port_));
        EXPECT_TRUE(made.valid());
        return made;
    }
    /// "welcome" and the name of the device, or why not.
    static std::string answer_of(control_connection &link) {
        auto const answer = link.receive(limit_s);
        if (!answer) {
            return answer.failure().message();
        }
        packet_reader packet(answer.value());
        auto const type = packet.type<frame>();
        if (type == frame::refused) {
            return std::string(packet.text());
        }
        auto const offered = type == frame::accepted ? remote::decode_device_description(packet)
                                                     : error(OMPX_ERR_ARG, "another frame");
        return offered ? "welcome " + offered.value().name : offered.failure().message();
    }
    [[nodiscard]] std::string answer_for(std::uint32_t device) const {
        auto link = connect(device);
        return answer_of(link);
    }
    /// A client that has the token is served at once, whatever else is there.
    void expect_prompt_service() const {
        auto const begin = clock::now();
        EXPECT_EQ(answer_for(0), "welcome device 0");
        EXPECT_LT(clock::now() - begin, 1s);
    }
    [[nodiscard]] std::chrono::nanoseconds processor_time() const {
        clockid_t which = 0;
        EXPECT_EQ(::clock_getcpuclockid(pid_, &which), 0);
        timespec now{};
        ::clock_gettime(which, &now);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    }
    [[nodiscard]] int num_children() const {
        std::string const path =
            "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
        std::ifstream file(path);
        return static_cast<int>(std::distance(std::istream_iterator<int>(file), {}));
    }
    int status_at_end() {
        int how = 0;
        EXPECT_EQ(::waitpid(pid_, &how, 0), pid_);
        pid_ = 0;
        return how;
    }

    int port_ = 0;
    pid_t pid_ = 0;
    unique_fd stop_;
};

void write_raw(const unique_fd &socket, std::span<const unsigned char> bytes) {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
}
void write_raw(const unique_fd &socket, std::string_view bytes) {
    write_raw(socket,
              std::span(reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size()));
}

/// What comes until the other end closes or `limit` is over; a second value of false: the latter.
std::pair<secure::testing::bytes, bool> read_until_closed(const unique_fd &socket,
                                                          std::chrono::milliseconds limit = 20s) {
    secure::testing::bytes all;
    auto const end = clock::now() + limit;
    for (;;) {
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
        pollfd entry{socket.get(), POLLIN, 0};
        if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) == 0) {
            return {all, false};
        }
        std::array<unsigned char, 4096> buffer{};
        ssize_t const got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
        if (got <= 0) {
            return {all, true};
        }
        all.insert(all.end(), buffer.begin(), buffer.begin() + got);
    }
}

TEST_F(server_test, describes_each_device) {
    start(3);
    for (std::uint32_t const device : {0U, 2U, 1U}) {
        EXPECT_EQ(answer_for(device), "welcome device " + std::to_string(device));
    }
}

TEST_F(server_test, refuses_what_it_has_not) {
    start(2);
    EXPECT_THAT(answer_for(2), HasSubstr("no such device"));
    EXPECT_THAT(answer_for(~0U - 1), HasSubstr("no such device"));
    auto link = connect(2);
    EXPECT_THAT(answer_of(link), HasSubstr("no such device"));
    EXPECT_FALSE(link.receive(limit_s).ok()); // and it is over
}

// ---- Connections that do not prove that they know the token

constexpr int num_tries = 200;

TEST_F(server_test, says_nothing_to_those_with_another_token) {
    start(1);
    for (int i = 0; i < num_tries; ++i) {
        std::array const tokens{std::string(), std::string("a toke"), std::string("a tokens"),
                                std::string("A token"), std::to_string(i)};
        auto exchange = handshake::initiate(
            secure::secret::from_text(tokens[static_cast<std::size_t>(i) % tokens.size()]),
            remote::handshake_options_for(remote::client_party(99)), remote::service_party);
        unique_fd const socket = connect_raw();
        write_raw(socket, exchange.output());
        auto const [bytes, is_closed] = read_until_closed(socket);
        EXPECT_TRUE(is_closed);
        EXPECT_TRUE(bytes.empty());
    }
    EXPECT_EQ(num_children(), 0);
    auto const refused = try_to_connect(0, "another token");
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.failure().message(), HasSubstr("refuses this process"));
    EXPECT_THAT(refused.failure().remedy(), HasSubstr("same DIOMP_TOKEN"));
    expect_prompt_service();
}

TEST_F(server_test, tells_other_versions_after_their_proof_only) {
    start(1);
    auto options = remote::handshake_options_for(remote::client_party(0));
    ++options.version;
    auto exchange = handshake::initiate(a_token(), options, remote::service_party);
    unique_fd const socket = connect_raw();
    auto const ended = secure::complete_handshake(socket.get(), std::move(exchange), limit_s);
    ASSERT_FALSE(ended.ok());
    EXPECT_THAT(ended.failure().message(), HasSubstr("speaks version"));
    EXPECT_EQ(num_children(), 0);
}

TEST_F(server_test, serves_no_recording) {
    start(1);
    // A client's side of a connection, as a host on the network sees it.
    auto genuine = handshake::initiate(
        a_token(), remote::handshake_options_for(remote::client_party(0)), remote::service_party);
    secure::testing::bytes recording;
    {
        unique_fd const socket = connect_raw();
        auto const hello = secure::testing::take_output(genuine);
        write_raw(socket, hello);
        std::array<unsigned char, handshake::response_bytes> answer{};
        ASSERT_EQ(::recv(socket.get(), answer.data(), answer.size(), MSG_WAITALL),
                  static_cast<ssize_t>(answer.size()));
        genuine.receive(answer);
        auto const proof = secure::testing::take_output(genuine);
        write_raw(socket, proof);
        control_connection link(unique_fd(::dup(socket.get())), genuine.take_session_keys());
        EXPECT_EQ(answer_of(link), "welcome device 0");
        recording = hello;
        recording.insert(recording.end(), proof.begin(), proof.end());
    }
    secure::testing::bytes last;
    for (int i = 0; i < num_tries; ++i) {
        unique_fd const socket = connect_raw();
        write_raw(socket, recording);
        auto const [bytes, is_closed] = read_until_closed(socket);
        EXPECT_TRUE(is_closed);
        EXPECT_EQ(bytes.size(), handshake::response_bytes); // of the handshake, and nothing more
        EXPECT_NE(bytes, last);
        last = bytes;
    }
    auto const end = clock::now() + 20s;
    while (num_children() > 0 && clock::now() < end) { // the genuine one's
        std::this_thread::yield();
    }
    EXPECT_EQ(num_children(), 0);
    expect_prompt_service();
}

TEST_F(server_test, serves_no_other_purpose_or_role) {
    start(1);
    auto const as_client = remote::handshake_options_for(remote::client_party(0));
    for (int i = 0; i < num_tries; ++i) {
        auto options = as_client;
        secure::party whom = remote::service_party;
        switch (i % 4) {
        case 0:
            options.why = secure::purpose::transfers;
            break;
        case 1:
            whom = {secure::role::session, 0};
            break;
        case 2:
            whom.number = 1;
            break;
        default: // the service's own hello
            options.self = {secure::role::service, static_cast<std::uint32_t>(i % 3)};
        }
        unique_fd const socket = connect_raw();
        auto const ended = secure::complete_handshake(
            socket.get(), handshake::initiate(a_token(), options, whom), limit_s);
        EXPECT_FALSE(ended.ok());
    }
    EXPECT_EQ(num_children(), 0);
    expect_prompt_service();
}

TEST_F(server_test, closes_on_those_who_talk_nonsense) {
    start(1);
    for (std::string const &bytes : {std::string(handshake::hello_bytes, '\0'),
                                     std::string(5000, '\xff'), std::string(100, 'x')}) {
        unique_fd const socket = connect_raw();
        write_raw(socket, bytes);
        auto const [came, is_closed] = read_until_closed(socket);
        EXPECT_TRUE(is_closed);
        EXPECT_TRUE(came.empty());
    }
    expect_prompt_service();
}

TEST_F(server_test, is_not_held_up_by_those_who_are_slow) {
    start(1);
    std::vector<handshake> exchanges;
    std::vector<unique_fd> slow;
    for (std::size_t size = 0; size < handshake::hello_bytes; size += 3) {
        slow.push_back(connect_raw());
        exchanges.push_back(
            handshake::initiate(a_token(), remote::handshake_options_for(remote::client_party(0)),
                                remote::service_party));
        write_raw(slow.back(), exchanges.back().output().first(size));
        exchanges.back().discard_output(size);
    }
    expect_prompt_service();
    // They are served as well.
    for (std::size_t const i : {std::size_t{0}, slow.size() / 2, slow.size() - 1}) {
        auto proven = secure::complete_handshake(slow[i].get(), std::move(exchanges[i]), limit_s);
        ASSERT_TRUE(proven.ok()) << proven.failure().message();
        control_connection link(std::move(slow[i]), proven.take());
        EXPECT_EQ(answer_of(link), "welcome device 0");
    }
    expect_prompt_service();
}

TEST_F(server_test, gives_silent_connections_up) {
    start(1, [](server_options &options) { options.handshake_timeout_s = 0.2; });
    unique_fd const silent = connect_raw();
    unique_fd const begun = connect_raw();
    write_raw(begun, std::string(10, 'x'));
    EXPECT_TRUE(read_until_closed(silent).second);
    EXPECT_TRUE(read_until_closed(begun).second);
    expect_prompt_service();
}

/// As a scanner of ports does.
TEST_F(server_test, has_room_beside_closed_connections) {
    start(1);
    for (int i = 0; i < num_tries; ++i) {
        write_raw(connect_raw(), "GE");
    }
    expect_prompt_service();
}

/// Holds so many connections to a port, in a process of its own with descriptors for them: what the
/// other end closes is opened again.
class crowd {
public:
    crowd(int port, std::size_t size) {
        int ready[2];
        EXPECT_EQ(::pipe(ready), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::alarm(60);
            hold(static_cast<std::uint16_t>(port), size, ready[1]);
        }
        ::close(ready[1]);
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
    }
    ~crowd() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    crowd(const crowd &) = delete;
    crowd &operator=(const crowd &) = delete;

private:
    [[noreturn]] static void hold(std::uint16_t port, std::size_t size, int ready) {
        rlimit most{};
        ::getrlimit(RLIMIT_NOFILE, &most);
        most.rlim_cur = most.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &most);
        std::vector<unique_fd> held(size);
        for (bool is_first = true;; is_first = false) {
            for (unique_fd &each : held) {
                char byte = 0;
                bool const is_open = each.valid() &&
                                     ::recv(each.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
                                     errno == EAGAIN;
                if (!is_open) {
                    each = secure::testing::connect_to(port);
                }
            }
            if (is_first) {
                static_cast<void>(!::write(ready, "r", 1));
            }
        }
    }
    pid_t pid_;
};

TEST_F(server_test, serves_its_clients_beside_a_crowd) {
    start(1);
    crowd const others(port_, 2000);
    for (int i = 0; i < 30; ++i) {
        expect_prompt_service();
    }
}

TEST_F(server_test, does_not_spin_without_descriptors) {
    start(1, [](server_options &options) {
        options.max_sessions = 1000;
        rlimit const few{40, 40};
        ::setrlimit(RLIMIT_NOFILE, &few);
    });
    std::vector<unique_fd> held;
    for (int i = 0; i < 100; ++i) {
        held.push_back(connect_raw());
    }
    std::vector<control_connection> clients;
    std::string answer = "welcome device 0";
    while (answer == "welcome device 0" && clients.size() < 100) { // its clients come first
        auto link = try_to_connect(0);
        if (!link) {
            break;
        }
        clients.push_back(link.take());
        answer = answer_of(clients.back());
        if (answer == "welcome device 0") { // unless there is no descriptor for its output
            auto more = clients.back().receive(0.05);
            answer = more || more.failure().code() != OMPX_ERR_TIMEOUT ? "over" : answer;
        }
    }
    EXPECT_GT(clients.size(), 4U);
    EXPECT_LT(clients.size(), 100U);
    for (int i = 0; i < 100; ++i) {
        held.push_back(connect_raw());
    }
    auto const before = processor_time();
    std::this_thread::sleep_for(1s); // what is measured is a time
    EXPECT_LT(processor_time() - before, 100ms);
    clients.clear();
    auto const end = clock::now() + 20s;
    for (answer.clear(); answer != "welcome device 0" && clock::now() < end;) {
        auto link = try_to_connect(0);
        answer = link ? answer_of(link.value()) : "";
    }
    EXPECT_EQ(answer, "welcome device 0");
}

TEST_F(server_test, has_a_limit_of_sessions) {
    start(1, [](server_options &options) { options.max_sessions = 2; });
    auto first = connect();
    auto second = connect();
    EXPECT_EQ(answer_of(first), "welcome device 0");
    EXPECT_EQ(answer_of(second), "welcome device 0");
    EXPECT_THAT(answer_for(0), HasSubstr("too many sessions"));
    first.shut_down();
    auto const end = clock::now() + 20s;
    std::string answer;
    while (answer != "welcome device 0" && clock::now() < end) {
        std::this_thread::sleep_for(5ms);
        answer = answer_for(0);
    }
    EXPECT_EQ(answer, "welcome device 0");
}

TEST_F(server_test, tells_how_a_session_ended) {
    start(1);
    auto link = connect();
    EXPECT_EQ(answer_of(link), "welcome device 0");
    ASSERT_TRUE(link.send("\x63no join").ok());
    std::string told;
    for (auto answer = link.receive(limit_s); answer; answer = link.receive(limit_s)) {
        packet_reader packet(answer.value());
        EXPECT_EQ(packet.type<frame>(), frame::ended);
        told += packet.text();
        told += '\n';
    }
    EXPECT_THAT(told, HasSubstr("is not 'join'"));
}

TEST_F(server_test, once_is_over_with_its_last_session) {
    start(2, [](server_options &options) { options.once = true; });
    {
        EXPECT_FALSE(try_to_connect(0, "another token").ok()); // is none
        auto first = connect();
        auto second = connect();
        EXPECT_EQ(answer_of(first), "welcome device 0");
        EXPECT_EQ(answer_of(second), "welcome device 0");
        EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0);
    }
    EXPECT_EQ(status_at_end(), 0);
}

TEST_F(server_test, takes_its_sessions_along_at_any_time) {
    start(1);
    auto link = connect();
    EXPECT_EQ(answer_of(link), "welcome device 0");
    ::kill(pid_, SIGKILL); // the session may not have begun
    status_at_end();
    EXPECT_EQ(link.receive(limit_s).failure().code(), OMPX_ERR_PEER);
}

TEST_F(server_test, ends_its_sessions_when_it_is_asked_to_end) {
    start(1);
    auto link = connect();
    EXPECT_EQ(answer_of(link), "welcome device 0");
    unique_fd const silent = connect_raw();
    ASSERT_EQ(::write(stop_.get(), "x", 1), 1);
    EXPECT_EQ(status_at_end(), 0);
    EXPECT_EQ(link.receive(limit_s).failure().code(), OMPX_ERR_PEER);
    EXPECT_TRUE(read_until_closed(silent).second);
}

} // namespace
} // namespace diomp::offload::service
