// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of transfers whose ends are said to be in memory of devices. It is the host's here,
// which a network reaches as well (DIOMP_NETWORK_DEVICE_MEMORY=on).
#include "support/patterns.h"
#include "transport/world.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace {

using namespace diomp_test;
using diomp::transport::memory_kind;
using diomp::transport::memory_kinds;

constexpr std::size_t sizes[] = {1, 8, 8192, 8193, 262144, 300000, std::size_t{64} << 20};
constexpr memory_kinds ends[] = {{memory_kind::cuda, memory_kind::host},
                                 {memory_kind::host, memory_kind::cuda},
                                 {memory_kind::cuda, memory_kind::cuda},
                                 {memory_kind::hip, memory_kind::hip}};

int next() { return (ours().rank() + 1) % ours().size(); }
int previous() { return (ours().rank() + ours().size() - 1) % ours().size(); }
world_rank rank_of(int number) { return world_rank{number}; }
std::uint64_t address_of(const std::byte *place) { return reinterpret_cast<std::uint64_t>(place); }

class device_memory : public testing::Test {
protected:
    void SetUp() override {
        auto *const device = ours().conduit().device();
        if (device == nullptr || !device->supports_memory_kind(memory_kind::cuda) ||
            ours().is_direct(next())) {
            GTEST_SKIP() << "this conduit does not reach memory of devices";
        }
    }
    static void put(std::byte *remote, const void *source, std::size_t nbytes, memory_kinds of,
                    completion &source_free) {
        EXPECT_TRUE(ours()
                        .conduit()
                        .device()
                        ->put_device_memory(rank_of(next()), address_of(remote), source, nbytes, of,
                                            source_free)
                        .ok());
    }
    static void get(const std::byte *remote, void *destination, std::size_t nbytes, memory_kinds of,
                    completion &done) {
        EXPECT_TRUE(ours()
                        .conduit()
                        .device()
                        ->get_device_memory(rank_of(next()), address_of(remote), destination,
                                            nbytes, of, done)
                        .ok());
    }
};

TEST_F(device_memory, puts_are_there_after_flush) {
    int round = 0;
    for (memory_kinds const of : ends) {
        for (std::size_t const nbytes : sizes) {
            auto const sent = pattern(ours().rank(), next(), round, nbytes);
            std::byte *const here = ours().memory_of(ours().rank());
            std::memset(here, 0x55, nbytes + 2);
            ours().meet();
            completion source_free;
            put(ours().memory_of(next()) + 1, sent.data(), nbytes, of, source_free);
            ours().flush(next());
            ours().wait(source_free);
            ours().meet();
            auto const expected = pattern(previous(), ours().rank(), round, nbytes);
            EXPECT_EQ(std::memcmp(here + 1, expected.data(), nbytes), 0) << nbytes;
            EXPECT_EQ(here[0], std::byte{0x55});
            EXPECT_EQ(here[nbytes + 1], std::byte{0x55});
            ++round;
            ours().meet();
        }
    }
}

TEST_F(device_memory, gets) {
    int round = 0;
    for (memory_kinds const of : ends) {
        for (std::size_t const nbytes : sizes) {
            auto const mine = pattern(ours().rank(), 0, round, nbytes);
            std::memcpy(ours().memory_of(ours().rank()), mine.data(), nbytes);
            ours().meet();
            std::vector<std::uint8_t> got(nbytes + 1, 0x55);
            completion done;
            get(ours().memory_of(next()), got.data(), nbytes, of, done);
            ours().wait(done);
            EXPECT_EQ(got.back(), 0x55);
            got.pop_back();
            EXPECT_EQ(got, pattern(next(), 0, round, nbytes)) << nbytes;
            ++round;
            ours().meet();
        }
    }
}

// A flush covers them all; from several threads, among transfers of host memory.
TEST_F(device_memory, many_in_flight_among_others) {
    constexpr std::size_t num_threads = 3;
    constexpr std::size_t num_puts = 60;
    constexpr std::size_t nbytes = 20000;
    auto const place = [](int owner, std::size_t number) {
        return ours().memory_of(owner) + number * nbytes;
    };
    auto const sent = pattern(ours().rank(), next(), 1, nbytes);
    std::memset(ours().memory_of(ours().rank()), 0, num_threads * num_puts * nbytes);
    ours().meet();
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < num_threads; ++thread) {
            threads.emplace_back([&, thread] {
                completion source_free;
                for (std::size_t i = 0; i < num_puts; ++i) {
                    std::byte *const there = place(next(), thread * num_puts + i);
                    memory_kinds const of = i % 3 == 0 ? memory_kinds{} : ends[i % std::size(ends)];
                    if (of.are_host()) {
                        ours().put(next(), there, sent.data(), nbytes);
                    } else {
                        put(there, sent.data(), nbytes, of, source_free);
                    }
                }
                ours().wait(source_free);
            });
        }
    }
    ours().flush_all();
    ours().meet();
    auto const expected = pattern(previous(), ours().rank(), 1, nbytes);
    for (std::size_t i = 0; i < num_threads * num_puts; ++i) {
        ASSERT_EQ(std::memcmp(place(ours().rank(), i), expected.data(), nbytes), 0) << i;
    }
    ours().meet();
}

// The vendor's library is there for each call of the network, and gone when it has been withdrawn.
TEST_F(device_memory, threads_work_in_the_scope_that_was_given) {
    std::atomic<int> num_entered{0};
    ours().conduit().device()->bind_device_context([&]() -> std::shared_ptr<void> {
        num_entered.fetch_add(1);
        return nullptr;
    });
    std::uint64_t value = 7;
    completion source_free;
    put(ours().memory_of(next()), &value, sizeof(value), ends[0], source_free);
    ours().flush(next());
    ours().wait(source_free);
    EXPECT_GT(num_entered.load(), 0);
    ours().conduit().device()->bind_device_context({});
    int const before = num_entered.load();
    put(ours().memory_of(next()), &value, sizeof(value), ends[0], source_free);
    ours().flush(next());
    ours().wait(source_free);
    EXPECT_EQ(num_entered.load(), before);
    ours().meet();
}

} // namespace
