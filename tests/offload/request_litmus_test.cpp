// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Litmus tests of the order of memory on rings alone: two devices of one process, each with a ring
// and a proxy that copies between their segments. With the thread sanitizer: each access that the
// rings and signals do not order is a data race, also where no iteration shows it.
#include "offload/ring_fixture.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

#include "offload/litmus_device.h"

constexpr int num_devices = 3;
/// Memory of a device: that of the litmus tests, the words of barriers, and a cell for each device.
constexpr std::size_t barrier_at = LITMUS_WORDS;
constexpr std::size_t cells_at = barrier_at + DIOMP_BARRIER_WORDS;
constexpr std::size_t num_words = cells_at + num_devices;

/// Moves bytes as the runtime does: an aligned word by one access, which other devices may read
/// meanwhile. Acquire and release, since the sanitizer does not know fences.
void move(char *to, const char *from, std::uint64_t nbytes) {
    if (nbytes == sizeof(std::uint64_t)) {
        auto *const word = reinterpret_cast<std::uint64_t *>(to);
        __atomic_store_n(
            word, __atomic_load_n(reinterpret_cast<const std::uint64_t *>(from), __ATOMIC_ACQUIRE),
            __ATOMIC_RELEASE);
        return;
    }
    std::memcpy(to, from, nbytes);
}

class scripted_device : public ring_tests::ring_fixture {
public:
    explicit scripted_device(int rank) : memory(num_words) {
        own_.rank = rank;
        own_.num_ranks = num_devices;
        own_.base = address(memory.data());
        own_.segment_bytes = own_.symmetric_end = own_.mapped_begin = num_words * 8;
        own_.barrier_words = &memory[barrier_at];
        own_.timeout_ns = 50'000'000'000; // what is lost ends the test
        own_.peers = unmapped_.data();    // all by requests, also to the own rank
    }
    void TestBody() override {}

    diomp_endpoint *endpoint() { return &own_; }
    std::string error() { return message(); }
    /// Executes the next request; false: there is none.
    bool serve(std::vector<std::unique_ptr<scripted_device>> &all) {
        diomp_request what{};
        if (!ring_.take(what)) {
            return false;
        }
        std::array<std::uint64_t, 6> reply{};
        auto &peer = *all[static_cast<std::size_t>(what.rank < 0 ? 0 : what.rank)];
        execute(what, peer, reply);
        ring_.complete(what, 0, reply);
        return true;
    }

    std::vector<std::uint64_t> memory;

private:
    std::array<diomp_peer, num_devices> unmapped_{};

    char *here(std::uint64_t address) const {
        return reinterpret_cast<char *>(address); // NOLINT(performance-no-int-to-ptr)
    }
    char *at(scripted_device &peer, std::uint64_t address) const {
        return here(peer.own_.base + (address - own_.base));
    }
    void execute(const diomp_request &what, scripted_device &peer,
                 std::array<std::uint64_t, 6> &reply) const {
        auto const &field = what.field;
        switch (what.operation % DIOMP_REQUEST_REPLY) {
        case DIOMP_REQUEST_PUT:
            return move(at(peer, field[0]), here(field[3]), field[4]);
        case DIOMP_REQUEST_PUT_INLINE:
            return move(at(peer, field[0]), reinterpret_cast<const char *>(&field[1]), what.detail);
        case DIOMP_REQUEST_GET_REPLY:
            return move(reinterpret_cast<char *>(reply.data()), at(peer, field[0]), what.detail);
        case DIOMP_REQUEST_PUT_SIGNAL:
            move(at(peer, field[0]), here(field[3]), field[4]);
            return diomp_release_64(at(peer, field[1]), field[2]);
        case DIOMP_REQUEST_PUT_SIGNAL_INLINE:
            if ((what.detail & 0xff) != 0) {
                move(at(peer, field[0]), reinterpret_cast<const char *>(&field[3]),
                     what.detail & 0xff);
            }
            return diomp_release_64(at(peer, field[1]), field[2]);
        default:
            diomp_fence_system(); // a fence; what came before is complete
        }
    }
};

/// Devices with their proxies.
class scripted_devices {
public:
    scripted_devices() {
        for (int rank = 0; rank < num_devices; ++rank) {
            all_.push_back(std::make_unique<scripted_device>(rank));
        }
        for (auto const &each : all_) {
            proxies_.push_back(std::make_unique<proxy>(serve{each.get(), &all_}));
        }
    }
    scripted_device &operator[](int rank) { return *all_[static_cast<std::size_t>(rank)]; }

private:
    struct serve {
        scripted_device *device;
        std::vector<std::unique_ptr<scripted_device>> *all;
        bool operator()() const { return device->serve(*all); }
    };
    using proxy = ring_tests::proxy_thread<serve>;

    std::vector<std::unique_ptr<scripted_device>> all_;
    std::vector<std::unique_ptr<proxy>> proxies_;
};

TEST(request_litmus, no_forbidden_outcome) {
    constexpr int max_rounds = 40;
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    scripted_devices devices;
    std::uint64_t number = 1;
    for (int n = 0; n == 0 || (n < max_rounds && std::chrono::steady_clock::now() < until); ++n) {
        for (int test = 0; test < LITMUS_TESTS; ++test) {
            litmus_batch const batch = litmus_nth_batch(test, n, num_devices, number);
            std::array<litmus_seen, LITMUS_ROLES> seen{};
            ring_tests::run_threads(batch.num_roles, [&](int role) {
                auto &on = devices[batch.rank_of[role]];
                EXPECT_EQ(litmus_role(on.endpoint(), &batch, role, on.memory.data(),
                                      &seen[static_cast<std::size_t>(role)]),
                          0)
                    << litmus_name(test) << ": " << on.error();
            });
            ASSERT_FALSE(HasFailure()); // the roles are out of step
            for (int i = 0; i < LITMUS_BATCH; ++i) {
                std::array<char, 600> text{};
                ASSERT_EQ(litmus_forbids(&batch, seen.data(), i, text.data(), text.size()), 0)
                    << text.data();
            }
            number += LITMUS_BATCH;
        }
    }
}

TEST(request_litmus, barriers_order_puts) {
    constexpr std::uint64_t num_rounds = 100;
    scripted_devices devices;
    ring_tests::run_threads(num_devices, [&](int me) {
        scripted_device &mine = devices[me];
        std::uint64_t *const cells = &mine.memory[cells_at];
        for (std::uint64_t round = 1; round <= num_rounds; ++round) {
            for (int rank = 0; rank < num_devices; ++rank) {
                ASSERT_EQ(litmus_put(mine.endpoint(), rank, cells + me, &round, sizeof(round)), 0);
            }
            ASSERT_EQ(diomp_device_barrier(mine.endpoint(), nullptr), 0) << mine.error();
            for (int rank = 0; rank < num_devices; ++rank) {
                ASSERT_EQ(cells[rank], round);
            }
            ASSERT_EQ(diomp_device_barrier(mine.endpoint(), nullptr), 0) << mine.error();
        }
    });
}

} // namespace
