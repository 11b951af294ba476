// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a network conduit does when a peer is killed, stops for good, or stops and goes on.
#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/create.h"
#include "transport/forked_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace diomp_test;
using diomp::world_rank;
using diomp::transport::completion;
using diomp::transport::message;
using std::chrono::steady_clock;

constexpr std::size_t memory_bytes = std::size_t{64} << 20;

/// Of the environment; between nodes "auto" is UCX.
std::string network() {
    const char *const chosen = std::getenv("DIOMP_CONDUIT");
    return chosen != nullptr ? chosen : "auto";
}

/// One end of the pair.
struct end {
    std::unique_ptr<diomp::transport::arena> arena;
    std::unique_ptr<diomp::transport::conduit> conduit;
    std::mutex mutex;
    std::string told; ///< by the failure sink
    int num_told = 0;
    std::atomic<int> num_messages{0};

    end(diomp::launch::launcher &launcher, double timeout_s) {
        arena = diomp::transport::arena::create(
                    launcher, {0, memory_bytes, diomp::transport::control_bytes_per_rank()})
                    .take();
        diomp::transport::conduit_options options;
        options.dead_peer_timeout_s = timeout_s;
        auto made = diomp::transport::create(network(), launcher, *arena, options);
        if (!made) {
            std::fprintf(stderr, "set-up: %s\n", made.failure().message().c_str());
            std::_Exit(8);
        }
        conduit = made.take();
        conduit->peers()->report_failures_to([this](world_rank peer, std::string why) {
            std::lock_guard const guard(mutex);
            told = std::to_string(peer.value()) + ": " + why;
            ++num_told;
        });
    }
    std::uint64_t remote() { return reinterpret_cast<std::uint64_t>(arena->slot(world_rank{1})); }
    void poll() {
        conduit->poll([&](const message &) { ++num_messages; });
    }
    /// Seconds until done; ends the process if that takes too long.
    double wait(const completion &done) {
        auto const begin = steady_clock::now();
        for (;;) {
            std::chrono::duration<double> const waited = steady_clock::now() - begin;
            if (done.is_done()) {
                return waited.count();
            }
            poll();
            ::sched_yield();
            if (waited.count() > 40) {
                std::fprintf(stderr, "a transfer neither completes nor fails\n");
                std::_Exit(9);
            }
        }
    }
};

/// For the forked processes, which cannot use EXPECT: the line that failed is the exit status.
#define DEMAND(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                   \
            return __LINE__ % 200 + 10;                                                            \
        }                                                                                          \
    } while (false)

/// Rank 1: waits to be killed. Messages are served by the conduit's own thread.
int serve_for_ever() {
    for (;;) {
        ::pause();
    }
}

int lose_peer(diomp::launch::launcher &launcher, int signal, double timeout_s,
              const char *expected_word) {
    end here(launcher, timeout_s);
    DEMAND(launcher.fence());
    if (launcher.info().rank == world_rank{1}) {
        return serve_for_ever();
    }
    std::vector<std::byte> data(8 << 20, std::byte{1});
    completion before;
    DEMAND(here.conduit->rma()->put(world_rank{1}, here.remote(), data.data(), 8, before));
    DEMAND(here.conduit->rma()->flush(world_rank{1}, before));
    here.wait(before);
    DEMAND(before.failure == 0);

    ::kill(process_of_rank_1(launcher), signal);
    completion put_done;
    completion flushed;
    completion got;
    std::uint64_t value = 0;
    auto const begin = steady_clock::now();
    // Each may be refused at once, if the loss is known by then.
    auto started =
        here.conduit->rma()->put(world_rank{1}, here.remote(), data.data(), 100, put_done);
    if (started) {
        started = here.conduit->rma()->put(world_rank{1}, here.remote(), data.data(), data.size(),
                                           put_done);
    }
    bool const flushing = started.ok() && here.conduit->rma()->flush(world_rank{1}, flushed).ok();
    bool const getting =
        here.conduit->rma()->get(world_rank{1}, here.remote(), &value, sizeof(value), got).ok();
    here.wait(flushed);
    here.wait(got);
    here.wait(put_done);
    DEMAND(!flushing || flushed.failure == OMPX_ERR_PEER);
    DEMAND(!getting || got.failure == OMPX_ERR_PEER);
    std::chrono::duration<double> const taken = steady_clock::now() - begin;
    DEMAND(taken.count() < timeout_s + 15); // generous: machines are busy
    DEMAND(!here.conduit->rma()->put(world_rank{1}, here.remote(), data.data(), 8, put_done));
    for (;;) { // completions end before the sink is told
        std::lock_guard const guard(here.mutex);
        if (here.num_told > 0) {
            break;
        }
    }
    DEMAND(here.num_told == 1);
    DEMAND(here.told.starts_with("1: rank 1 on host1"));
    DEMAND(here.told.find(expected_word) != std::string::npos);
    DEMAND(here.conduit->messages(world_rank{1})
               .try_send(world_rank{1}, 0, {})); // lost, and does not block
    here.conduit.reset();                        // does not hang either
    return 0;
}

TEST(faults, a_killed_peer_ends_what_waits_for_it) {
    EXPECT_EQ(run_two_ranks([](diomp::launch::launcher &launcher) {
                  return lose_peer(launcher, SIGKILL, 5, "outstanding: ");
              }),
              0);
}

TEST(faults, a_peer_that_stops_for_good_is_given_up) {
    EXPECT_EQ(run_two_ranks([](diomp::launch::launcher &launcher) {
                  return lose_peer(launcher, SIGSTOP, 2, "has not answered");
              }),
              0);
}

TEST(faults, a_peer_that_stops_and_goes_on_costs_nothing) {
    auto const body = [](diomp::launch::launcher &launcher) {
        end here(launcher, 8);
        DEMAND(launcher.fence());
        if (launcher.info().rank == world_rank{1}) {
            return serve_for_ever();
        }
        int const peer = process_of_rank_1(launcher);
        ::kill(peer, SIGSTOP);
        std::vector<std::byte> data(16 << 20, std::byte{7});
        completion done;
        DEMAND(
            here.conduit->rma()->put(world_rank{1}, here.remote(), data.data(), data.size(), done));
        for (int i = 0; i < 1000; ++i) {
            DEMAND(here.conduit->rma()->put(
                world_rank{1}, here.remote() + 8 * static_cast<unsigned>(i), data.data(), 8, done));
        }
        DEMAND(here.conduit->rma()->flush(world_rank{1}, done));
        // Long enough for pings; the peer cannot answer before it goes on.
        auto const until = steady_clock::now() + std::chrono::seconds{3};
        while (steady_clock::now() < until) {
            here.poll();
            DEMAND(!done.is_done());
        }
        ::kill(peer, SIGCONT);
        here.wait(done);
        DEMAND(done.failure == 0);
        std::vector<std::byte> back(data.size());
        completion got;
        DEMAND(
            here.conduit->rma()->get(world_rank{1}, here.remote(), back.data(), back.size(), got));
        here.wait(got);
        DEMAND(got.failure == 0 && back == data);
        DEMAND(here.num_told == 0);
        return 0;
    };
    EXPECT_EQ(run_two_ranks(body), 0);
}

TEST(faults, a_full_queue_of_messages_says_so_and_empties) {
    auto const body = [](diomp::launch::launcher &launcher) {
        end here(launcher, 30);
        DEMAND(launcher.fence());
        std::vector<std::byte> const payload(1000);
        int sent = 0;
        if (launcher.info().rank == world_rank{0}) {
            // Nobody handles messages at rank 1, so that room must end.
            while (here.conduit->messages(world_rank{1}).try_send(world_rank{1}, 0, payload)) {
                ++sent;
                DEMAND(sent < 1000000);
            }
            DEMAND(sent > 10);
        }
        DEMAND(launcher.fence());
        if (launcher.info().rank == world_rank{1}) {
            for (;;) {
                here.poll();
            }
        }
        while (!here.conduit->messages(world_rank{1}).try_send(world_rank{1}, 0, payload)) {
            here.poll();
        }
        return 0;
    };
    EXPECT_EQ(run_two_ranks(body), 0);
}

} // namespace
