// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sessions and a client that says to them what no plugin would: raw batches and control frames.
// All are forked, so that each test has a world of its own.
#pragma once

#include "launch/launch.h"
#include "offload/remote/control_pair.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace diomp_test {

using diomp::packet_reader;
using diomp::packet_writer;
using diomp::world_rank;
using diomp::offload::remote::frame;
using diomp::offload::remote::operation;
namespace remote = diomp::offload::remote;
namespace service = diomp::offload::service;

constexpr std::size_t memory_bytes = 1 << 20; ///< of the slot
constexpr double limit_s = 20;

/// How sessions and their client are set up.
struct session_setting {
    std::string conduit = "tcp";
    std::string kind = "cpu";
    std::string device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY of sessions
    std::string client_device_memory = "auto";
    int sessions = 1;
};

class client_side {
public:
    client_side(std::vector<remote::control_connection> sessions, std::vector<pid_t> pids,
                const session_setting &setting)
        : processes(std::move(pids)) {
        std::vector<remote::control_peer> all;
        for (remote::control_connection &session : sessions) {
            links.push_back(std::make_unique<remote::control_connection>(std::move(session)));
            remote::join_frame const join{.rank = static_cast<std::uint32_t>(links.size()),
                                          .size = static_cast<std::uint32_t>(sessions.size() + 1),
                                          .conduit = setting.conduit,
                                          .is_on_one_host = true};
            EXPECT_TRUE(links.back()->send(encode(join)).ok());
            all.push_back({links.back().get(), "session"});
        }
        remote::world_options options;
        options.conduit = setting.conduit;
        options.memory_bytes = memory_bytes;
        options.network_device_memory = setting.client_device_memory;
        remote::world_handlers handlers;
        handlers.reply = [this](const diomp::transport::message &incoming) { note(incoming); };
        auto made = remote::world::create(
            remote::make_client_launcher(
                std::move(all),
                {.size = static_cast<int>(links.size()) + 1, .scope = remote::host_scope::one_host},
                limit_s),
            options, std::move(handlers), [](world_rank, const std::string &) {});
        EXPECT_TRUE(made.ok()) << made.failure().message();
        ranks = made.take();
        memory = ranks->memory_of(world_rank(1));
    }

    struct answer {
        bool failed = false;
        std::string rest;
    };

    void send(std::uint64_t queue, std::uint64_t number, const std::string &operations,
              int rank = 1) {
        packet_writer packet;
        packet.number(queue);
        packet.number(number);
        packet.bytes(operations);
        std::string const bytes = packet.take();
        ranks->engine().send(world_rank(rank), remote::world::batch_handler,
                             std::as_bytes(std::span(bytes)));
    }
    bool has_answer(std::uint64_t queue, std::uint64_t number) {
        ranks->engine().poll();
        std::lock_guard const guard(mutex_);
        return answers_.contains({queue, number});
    }
    answer wait_for(std::uint64_t queue, std::uint64_t number) {
        auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
        while (!has_answer(queue, number)) {
            if (std::chrono::steady_clock::now() > end) {
                ADD_FAILURE() << "no answer";
                return {true, "no answer"};
            }
        }
        std::lock_guard const guard(mutex_);
        return answers_[{queue, number}];
    }
    /// Operations and a finish behind them.
    answer ask(std::uint64_t queue, std::uint64_t number, packet_writer &&operations,
               int rank = 1) {
        append_operation(operations, operation::finish);
        send(queue, number, operations.take(), rank);
        return wait_for(queue, number);
    }
    /// The same as the only batch of a queue of its own.
    answer ask(packet_writer &&operations, int rank = 1) {
        return ask(next_queue_++, 1, std::move(operations), rank);
    }
    /// A put and a get in the slot.
    void expect_service() {
        packet_writer batch;
        put(batch, memory + 4000, "it works");
        get(batch, memory + 4003, 5);
        auto const got = ask(std::move(batch));
        EXPECT_FALSE(got.failed) << got.rest;
        EXPECT_EQ(got.rest, "works");
    }
    /// What comes for one control frame.
    std::string answer_to(const std::string &packet, int rank = 1) {
        remote::control_connection &link = *links[static_cast<std::size_t>(rank) - 1];
        EXPECT_TRUE(link.send(packet).ok());
        auto answer = link.receive(limit_s);
        return answer ? answer.take() : "";
    }

    static void put(packet_writer &batch, std::uint64_t address, std::string_view bytes) {
        append_operation(batch, operation::put);
        batch.number(address);
        batch.text(bytes);
    }
    static void get(packet_writer &batch, std::uint64_t address, std::uint64_t nbytes) {
        append_operation(batch, operation::get);
        batch.number(address);
        batch.number(nbytes);
    }
    static void copy(packet_writer &batch, std::uint32_t to, std::uint64_t destination,
                     std::uint64_t source, std::uint64_t nbytes) {
        append_operation(batch, operation::copy);
        batch.number(to);
        batch.number(destination);
        batch.number(source);
        batch.number(nbytes);
    }
    static void release_pages(packet_writer &batch, std::uint64_t address, std::uint64_t nbytes) {
        append_operation(batch, operation::release_pages);
        batch.number(std::uint32_t{1});
        batch.number(address);
        batch.number(nbytes);
    }
    static void wait(packet_writer &batch, std::uint64_t queue, std::uint64_t number) {
        append_operation(batch, operation::wait);
        batch.number(queue);
        batch.number(number);
    }

    std::vector<std::unique_ptr<remote::control_connection>> links; ///< [rank - 1]
    std::vector<pid_t> processes;                                   ///< of the sessions
    std::unique_ptr<remote::world> ranks;
    std::uint64_t memory = 0; ///< the slot of the first device

private:
    void note(const diomp::transport::message &incoming) {
        auto decoded = remote::decode_reply(
            {reinterpret_cast<const char *>(incoming.payload.data()), incoming.payload.size()});
        if (decoded) {
            std::lock_guard const guard(mutex_);
            answers_[{decoded.value().queue, decoded.value().batch}] = {
                decoded.value().failed, std::string(decoded.value().rest)};
        }
    }

    std::uint64_t next_queue_ = 1000000;
    std::mutex mutex_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, answer> answers_;
};

/// The process of a session.
[[noreturn]] inline void be_session(remote::control_connection &client,
                                    service::image_store &images, const session_setting &setting) {
    ::alarm(60); // whatever happens, no process is left
    static service::activity_table activities;
    service::session_options options;
    options.images = &images;
    options.kind = setting.kind;
    options.network_device_memory = setting.device_memory;
    options.memory_bytes = memory_bytes;
    options.timeout_s = limit_s;
    options.activities = &activities;
    auto pipes = service::output_pipes::make().take();
    options.pipes = &pipes;
    std::_Exit(serve(client, options) ? 0 : 1);
}

/// The sessions' processes must end with `expected`.
inline void run_sessions(const session_setting &setting,
                         const std::function<void(client_side &)> &body, int expected = 0) {
    auto const images = service::image_store::create().take();
    std::vector<remote::control_connection> links;
    std::vector<pid_t> sessions;
    for (int i = 0; i < setting.sessions; ++i) {
        control_pair made = make_control_pair();
        links.push_back(std::move(made.client));
        sessions.push_back(::fork());
        if (sessions.back() == 0) {
            links.clear();
            be_session(made.service, *images, setting);
        }
    }
    pid_t const client = ::fork();
    if (client == 0) {
        ::alarm(60);
        client_side side(std::move(links), sessions, setting);
        body(side);
        std::fflush(nullptr);
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
    }
    links.clear();
    int how = 0;
    ::waitpid(client, &how, 0);
    EXPECT_EQ(how, 0) << "the client's side; see above";
    for (pid_t const session : sessions) {
        ::waitpid(session, &how, 0); // it ends with its client
        EXPECT_TRUE(WIFEXITED(how)) << "signal " << WTERMSIG(how);
        EXPECT_EQ(WEXITSTATUS(how), expected);
    }
}

} // namespace diomp_test
