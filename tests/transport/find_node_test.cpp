// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of two processes share memory, and that one notices the end of the other.
#include "transport/find_node.h"
#include "transport/forked_ranks.h"
#include "transport/node_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sched.h>
#include <set>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace diomp;

constexpr int together = 10;
constexpr int apart = 11;
constexpr int not_possible = 12; ///< the system does not let the test change its surroundings

/// What rank 0 finds if rank 1 calls `change` before; `change` returns false if it is not possible.
int find(const std::function<bool()> &change, const transport::node_search &how = {true, 0}) {
    return diomp_test::run_two_ranks([&](launch::launcher &launcher) {
        bool const is_1 = launcher.info().rank == world_rank(1);
        bool const is_changed = !is_1 || change();
        auto found = transport::find_node(launcher, how);
        if (!launcher.put("changed", is_changed ? "yes" : "no") || !found ||
            !launcher.put("name", found.value().name) || !launcher.fence()) {
            return 1;
        }
        if (launcher.get(world_rank(1), "changed").value() == "no") {
            return not_possible;
        }
        auto const &ranks = found.value().ranks;
        bool const has_both =
            ranks.size() == 2 && ranks[0].rank == world_rank(0) && ranks[1].rank == world_rank(1);
        bool const has_own = ranks.size() == 1 && ranks[0].rank == launcher.info().rank;
        bool const is_same_name = launcher.get(world_rank(0), "name").value() ==
                                  launcher.get(world_rank(1), "name").value();
        if (!launcher.put("found", has_both ? "both" : "own") || !launcher.fence() ||
            launcher.get(world_rank(0), "found").value() !=
                launcher.get(world_rank(1), "found").value()) {
            return 2;
        }
        return has_both && is_same_name ? together : has_own && !is_same_name ? apart : 3;
    });
}

/// Takes the right to connect to abstract sockets of other processes.
bool confine() {
    struct {
        std::uint64_t files = 0;
        std::uint64_t network = 0;
        std::uint64_t scoped = 1; // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
    } const attributes;
    long const rules = ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    return rules >= 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

/// Names of the sockets by which ranks find each other, as each process of the host sees them.
std::set<std::string> socket_names() {
    std::ifstream all("/proc/net/unix");
    std::set<std::string> found;
    for (std::string line; std::getline(all, line);) {
        if (auto const at = line.find("@diomp-node-"); at != std::string::npos) {
            found.insert(line.substr(at));
        }
    }
    return found;
}

TEST(find_node, processes_of_one_user_share_memory) {
    EXPECT_EQ(find([] { return true; }), together);
}

TEST(find_node, a_rank_that_may_not_share_is_alone) {
    EXPECT_EQ(find([] { return true; }, {false, 0}), apart);
}

TEST(find_node, a_node_has_at_most_so_many_ranks) {
    EXPECT_EQ(find([] { return true; }, {true, 1}), apart);
    EXPECT_EQ(find([] { return true; }, {true, 2}), together);
}

TEST(find_node, another_user_does_not_share) {
    int const found = find([] { return ::setgid(65534) == 0 && ::setuid(65534) == 0; });
    if (found == not_possible) {
        GTEST_SKIP() << "needs root, to become another user";
    }
    EXPECT_EQ(found, apart);
}

TEST(find_node, another_network_namespace_does_not_share) {
    int const found = find([] { return ::unshare(CLONE_NEWNET) == 0; });
    if (found == not_possible) {
        GTEST_SKIP() << "needs the right to make namespaces";
    }
    EXPECT_EQ(found, apart);
}

/// All that is written about it is equal: only passing a descriptor shows it.
TEST(find_node, a_process_that_cannot_pass_descriptors_does_not_share) {
    int const found = find(confine);
    if (found == not_possible) {
        GTEST_SKIP() << "needs Landlock of Linux 6.12";
    }
    EXPECT_EQ(found, apart);
}

TEST(find_node, no_socket_is_left) {
    EXPECT_EQ(find([] { return true; }), together);
    for (int i = 0; i < 10000 && !socket_names().empty(); ++i) { // of other tests
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(socket_names(), std::set<std::string>());
}

// Sockets of the arena are named after the node: with its name any process could bind them first.
TEST(find_node, the_name_of_a_node_is_in_no_socket_that_others_see_before) {
    int const seen = diomp_test::run_two_ranks([](launch::launcher &launcher) {
        auto found = transport::find_node(launcher, {true, 0});
        if (!found) {
            return 1;
        }
        for (transport::peer_process const &each : found.value().ranks) {
            auto socket = launcher.get(each.rank, "find_node.socket");
            if (!socket || socket.value().empty() || socket.value() == found.value().name) {
                return 2;
            }
        }
        return together;
    });
    EXPECT_EQ(seen, together);
}

TEST(node_watch, the_end_of_a_rank_is_seen_once) {
    int const seen = diomp_test::run_two_ranks([](launch::launcher &launcher) {
        auto found = transport::find_node(launcher, {true, 0});
        if (!found || found.value().ranks.size() != 2) {
            return 1;
        }
        std::erase_if(found.value().ranks, [&](const transport::peer_process &each) {
            return each.rank == launcher.info().rank;
        });
        auto const watch = transport::node_watch::create(found.value().ranks);
        if (!watch || !launcher.fence()) {
            return 2;
        }
        std::atomic<int> num_reports{0};
        watch.value()->start([&](world_rank lost, const std::string &why) {
            num_reports += lost == world_rank(1) && why.find("rank 1") == 0 ? 1 : 100;
        });
        bool const is_wrong = watch.value()->has_ended(world_rank(1)) ||
                              watch.value()->has_ended(world_rank(0)) || num_reports > 0;
        if (!launcher.fence() || launcher.info().rank == world_rank(1)) {
            ::pause();
        }
        if (is_wrong) {
            return 3;
        }
        ::kill(diomp_test::process_of_rank_1(launcher), SIGKILL);
        for (int i = 0; i < 20000 && num_reports == 0; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return watch.value()->has_ended(world_rank(1)) ? 10 + num_reports : 4;
    });
    EXPECT_EQ(seen, 11);
}

TEST(node_watch, a_process_that_does_not_exist_is_an_error) {
    pid_t const child = ::fork();
    if (child == 0) {
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    transport::peer_process const ended{world_rank(1), child};
    EXPECT_FALSE(transport::node_watch::create({&ended, 1}).ok());
}

TEST(node_watch, its_thread_ends_while_no_rank_does) {
    transport::peer_process const self{world_rank(0), ::getpid()};
    auto const watch = transport::node_watch::create({&self, 1});
    ASSERT_TRUE(watch.ok());
    watch.value()->start([](world_rank, const std::string &) { ADD_FAILURE(); });
    EXPECT_FALSE(watch.value()->has_ended(world_rank(0)));
}

} // namespace
