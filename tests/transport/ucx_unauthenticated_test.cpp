// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A process that knows the UCX address of a rank, but not the job's secret, sends it the messages
// that another rank would send; and what limits who reaches UCX's ports.
#include "base/secure/sockets.h"
#include "base/unique_fd.h"
#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/common/job_secret.h"
#include "transport/conduit.h"
#include "transport/create.h"
#include "transport/forked_ranks.h"
#include "transport/ucx/library.h"
#include "transport/ucx/listener_filter.h"
#include "transport/ucx/net_access.h"
#include "transport/ucx/packet_prover.h"
#include "transport/ucx/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <set>
#include <span>
#include <sstream>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace ucx = diomp::transport::ucx;
using diomp::world_rank;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int num_tries = 200; ///< of each kind of message
constexpr std::uint64_t untouched = 0x1111;
constexpr std::uint64_t changed = 0x2222;

/// For the forked processes, which cannot use EXPECT.
#define DEMAND(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                   \
            std::_Exit(1);                                                                         \
        }                                                                                          \
    } while (false)

/// What messages aim at; at the same address in both processes, which are forks of one.
struct targets {
    std::uint64_t forged = untouched;
    std::uint64_t genuine = untouched;
};
targets g_targets;

/// The bytes of a rank's UCX address, as ranks publish it.
std::vector<std::byte> published_address(diomp::launch::launcher &launcher, world_rank of) {
    std::istringstream words(launcher.get(of, "ucx").take());
    std::string host;
    std::string hex;
    words >> host >> hex;
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        unsigned char value = 0;
        std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
        bytes.push_back(std::byte{value});
    }
    return bytes;
}

/// A UCX worker of its own, with an endpoint to a rank.
class unauthenticated_process {
public:
    explicit unauthenticated_process(const std::vector<std::byte> &address)
        : ucx_(*ucx::load_library().value()) {
        ucp_config_t *config = nullptr;
        DEMAND(ucx_.ucp_config_read(nullptr, nullptr, &config) == UCS_OK);
        ucp_params_t parameters{};
        parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
        parameters.features = UCP_FEATURE_AM;
        DEMAND(ucx_.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config,
                                     &context_) == UCS_OK);
        ucp_worker_params_t worker{};
        DEMAND(ucx_.ucp_worker_create(context_, &worker, &worker_) == UCS_OK);
        ucp_ep_params_t endpoint{};
        endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        endpoint.address = reinterpret_cast<const ucp_address_t *>(address.data());
        DEMAND(ucx_.ucp_ep_create(worker_, &endpoint, &endpoint_) == UCS_OK);
    }
    unauthenticated_process(const unauthenticated_process &) = delete;
    unauthenticated_process &operator=(const unauthenticated_process &) = delete;

    void send(ucx::am_id id, std::span<const std::byte> header, std::span<const std::byte> body) {
        ucp_request_param_t parameters{};
        parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        parameters.flags = UCP_AM_SEND_FLAG_EAGER;
        ucs_status_ptr_t const request =
            ucx_.ucp_am_send_nbx(endpoint_, static_cast<unsigned>(id), header.data(), header.size(),
                                 body.data(), body.size(), &parameters);
        DEMAND(!UCS_PTR_IS_ERR(request));
        while (UCS_PTR_IS_PTR(request) &&
               ucx_.ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucx_.ucp_worker_progress(worker_);
        }
    }
    [[noreturn]] void progress_until_killed() {
        for (;;) {
            ucx_.ucp_worker_progress(worker_);
            ::sched_yield();
        }
    }

private:
    ucx::library const &ucx_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h endpoint_ = nullptr;
};

/// What a message says of its sender.
struct claim {
    std::int32_t source;
    std::uint16_t endpoint;
    std::uint64_t proof;
};

template <typename... Parts>
std::vector<std::byte> joined(const Parts &...parts) {
    std::vector<std::byte> bytes;
    auto const append = [&](const auto &part) {
        auto const *const begin = reinterpret_cast<const std::byte *>(&part);
        bytes.insert(bytes.end(), begin, begin + sizeof(part));
    };
    (append(parts), ...);
    return bytes;
}

/// A packet with a put of `changed`.
void send_packet(unauthenticated_process &from, const claim &of, std::uint64_t &target) {
    ucx::packet_header const header{of.proof, of.source, of.endpoint, 0, 0, 0};
    ucx::record const put{ucx::record_kind::put, 0, 0, sizeof(changed),
                          reinterpret_cast<std::uint64_t>(&target)};
    from.send(ucx::am_id::packet, {}, joined(header, put, changed));
}

/// The same as a large transfer.
void send_long(unauthenticated_process &from, const claim &of, std::uint64_t &target) {
    ucx::am_long_header const header{.proof = of.proof,
                                     .source = of.source,
                                     .endpoint = of.endpoint,
                                     .kind = ucx::record_kind::put,
                                     .memory = diomp::transport::memory_kind::host,
                                     .epoch = 0,
                                     .handler = 0,
                                     .payload_bytes = 0,
                                     .value = reinterpret_cast<std::uint64_t>(&target),
                                     .offset = 0};
    from.send(ucx::am_id::am_long, joined(header), joined(changed));
}

/// Rank 1 as an unauthenticated process: it uses nothing but the address.
[[noreturn]] void attack(diomp::launch::launcher &launcher) {
    auto const address = published_address(launcher, world_rank(0));
    unauthenticated_process other(address);
    auto secret = diomp::transport::fetch_secret(launcher, "ucx.secret");
    DEMAND(secret.ok());
    ucx::packet_prover const prover(secret.take());
    ucx::packet_prover const of_another_job(diomp::secure::secret::random());
    std::uint64_t const genuine = prover.proof_of(world_rank(1), 0, world_rank(0));
    std::vector<claim> const claims{
        {1, 0, 0},
        {1, 0, ~genuine},
        {1, 0, genuine + 1},
        {1, 0, of_another_job.proof_of(world_rank(1), 0, world_rank(0))},
        // Genuine ones of other endpoints: of the own messages that come back, of another worker.
        {1, 0, prover.proof_of(world_rank(0), 0, world_rank(1))},
        {1, 1, genuine},
        {0, 0, genuine},
        // Ranks and endpoints that do not exist.
        {2, 0, prover.proof_of(world_rank(2), 0, world_rank(0))},
        {-1, 0, genuine},
        {1, ucx::max_endpoints, prover.proof_of(world_rank(1), ucx::max_endpoints, world_rank(0))},
    };
    for (int i = 0; i < num_tries; ++i) {
        for (claim const &each : claims) {
            send_packet(other, each, g_targets.forged);
            send_long(other, each, g_targets.forged);
        }
        other.send(ucx::am_id::packet, {}, joined(changed));
        other.send(ucx::am_id::am_long, joined(changed), joined(changed));
    }
    // The control: with the proof the same messages write.
    send_packet(other, {1, 0, genuine}, g_targets.genuine);
    other.progress_until_killed();
}

int resist(diomp::launch::launcher &launcher) {
    if (launcher.info().rank == world_rank(1)) {
        ::setenv("DIOMP_LOG", "off", 1);
    }
    auto arena = diomp::transport::arena::create(
                     launcher, {0, 16 << 20, diomp::transport::control_bytes_per_rank()})
                     .take();
    auto made = diomp::transport::create("ucx", launcher, *arena, {});
    DEMAND(made.ok());
    if (launcher.info().rank == world_rank(1)) {
        attack(launcher);
    }
    auto const &genuine = std::atomic_ref(g_targets.genuine);
    while (genuine.load() == untouched) {
        made.value()->poll([](const diomp::transport::message & /*each*/) { DEMAND(false); });
        ::sched_yield();
    }
    DEMAND(genuine.load() == changed);
    DEMAND(g_targets.forged == untouched);
    return 0;
}

TEST(ucx_unauthenticated, messages_without_the_proof_of_their_endpoint_are_dropped) {
    testing::internal::CaptureStderr();
    int const status = diomp_test::run_two_ranks(resist);
    std::string const log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(status, 0) << log;
    EXPECT_THAT(log, testing::HasSubstr("does not prove that it knows the secret"));
    std::size_t reports = 0;
    for (std::size_t at = 0; (at = log.find("does not prove", at)) != std::string::npos; ++at) {
        ++reports;
    }
    EXPECT_LE(reports, 4);
}

TEST(ucx_prover, proofs_depend_on_all_that_they_name) {
    auto const secret = diomp::secure::secret::random();
    ucx::packet_prover const prover(secret.clone());
    std::set<std::uint64_t> seen;
    for (int source = 0; source < 4; ++source) {
        for (int target = 0; target < 4; ++target) {
            for (std::uint16_t endpoint = 0; endpoint < 4; ++endpoint) {
                seen.insert(prover.proof_of(world_rank(source), endpoint, world_rank(target)));
            }
        }
    }
    EXPECT_EQ(seen.size(), 64);
    ucx::packet_prover const same(secret.clone());
    EXPECT_TRUE(seen.contains(same.proof_of(world_rank(1), 2, world_rank(3))));
    ucx::packet_prover const other(diomp::secure::secret::random());
    EXPECT_FALSE(seen.contains(other.proof_of(world_rank(1), 2, world_rank(3))));
}

// ---- Ports

/// A connection to `port` from a loopback address; whether it exists when connect() returns.
bool connects_from(const char *source, std::uint16_t port) {
    diomp::unique_fd const made(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    ::inet_pton(AF_INET, source, &own.sin_addr);
    EXPECT_EQ(::bind(made.get(), reinterpret_cast<const sockaddr *>(&own), sizeof(own)), 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(made.get(), reinterpret_cast<const sockaddr *>(&to), sizeof(to)), -1);
    EXPECT_EQ(errno, EINPROGRESS);
    pollfd entry{made.get(), POLLOUT, 0};
    return ::poll(&entry, 1, 0) == 1; // loopback has delivered by now what it delivers
}

TEST(ucx_ports, other_sources_do_not_connect) {
    auto const listener = diomp::secure::testing::listen_on_loopback();
    auto const port = listener.port;
    ASSERT_TRUE(connects_from("127.0.0.3", port)) << "the test's own condition";
    std::vector<in6_addr> sources{*diomp::transport::parse_number("10.0.0.1"),
                                  *diomp::transport::parse_number("fd00::1"),
                                  *diomp::transport::parse_number("127.0.0.2")};
    ASSERT_TRUE(ucx::accept_only(listener.socket.get(), sources).ok());
    EXPECT_TRUE(connects_from("127.0.0.2", port));
    for (int i = 0; i < num_tries; ++i) {
        EXPECT_FALSE(connects_from("127.0.0.3", port));
    }
    EXPECT_TRUE(connects_from("127.0.0.2", port));
}

TEST(ucx_ports, too_many_sources_are_an_error) {
    auto const listener = diomp::secure::testing::listen_on_loopback();
    std::vector<in6_addr> const sources(5000, *diomp::transport::parse_number("10.0.0.1"));
    EXPECT_FALSE(ucx::accept_only(listener.socket.get(), sources).ok());
}

TEST(ucx_ports, are_found_among_those_that_listen) {
    auto const listener = diomp::secure::testing::listen_on_loopback();
    EXPECT_THAT(ucx::listening_sockets(), testing::Contains(listener.socket.get()));
    auto const port = htons(listener.port);
    auto const named = joined(std::uint64_t{0}, port, std::uint64_t{0});
    auto const other = joined(std::uint64_t{0}, static_cast<in_port_t>(~port), std::uint64_t{0});
    EXPECT_TRUE(ucx::is_port_in(listener.socket.get(), named));
    EXPECT_FALSE(ucx::is_port_in(listener.socket.get(), other));
}

// ---- Interfaces

diomp::transport::network_interface interface_of(const char *name, const char *number,
                                                 int prefix_bits) {
    diomp::transport::address only;
    only.number = *diomp::transport::parse_number(number);
    only.prefix_bits = prefix_bits;
    return {.name = name,
            .is_up = true,
            .is_loopback = only.is_loopback(),
            .hardware_address = {},
            .addresses = {only}};
}

std::vector<in6_addr> host_of(std::initializer_list<const char *> numbers) {
    std::vector<in6_addr> made;
    for (const char *const each : numbers) {
        made.push_back(*diomp::transport::parse_number(each));
    }
    return made;
}

class ucx_interfaces : public testing::Test {
protected:
    std::vector<diomp::transport::network_interface> own_{
        interface_of("lo", "127.0.0.1", 104), interface_of("eth0", "10.1.0.1", 112),
        interface_of("eth1", "10.2.0.1", 112), interface_of("docker0", "172.17.0.1", 112)};
};

TEST_F(ucx_interfaces, without_other_hosts_only_loopback) {
    EXPECT_THAT(ucx::interfaces_towards({}, own_), ElementsAre("lo"));
}

TEST_F(ucx_interfaces, those_that_lead_to_the_others) {
    ucx::host_list const others{host_of({"10.1.0.2", "172.17.0.1"}), host_of({"10.1.0.3"})};
    EXPECT_THAT(ucx::interfaces_towards(others, own_), ElementsAre("eth0"));
}

TEST_F(ucx_interfaces, all_that_are_distinct_if_a_host_is_behind_a_router) {
    ucx::host_list const others{host_of({"10.1.0.2", "172.17.0.1"}), host_of({"192.0.2.1"})};
    EXPECT_THAT(ucx::interfaces_towards(others, own_), ElementsAre("eth0", "eth1"));
}

TEST_F(ucx_interfaces, none_that_is_down) {
    own_[1].is_up = false;
    EXPECT_THAT(ucx::interfaces_towards({host_of({"10.1.0.2", "10.2.0.2"})}, own_),
                ElementsAre("eth1"));
}

TEST_F(ucx_interfaces, none_if_all_addresses_are_shared) {
    own_.erase(own_.begin() + 1, own_.begin() + 3);
    EXPECT_THAT(ucx::interfaces_towards({host_of({"172.17.0.1"})}, own_), IsEmpty());
}

} // namespace
