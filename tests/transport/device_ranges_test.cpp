// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of transfers with memory of devices that a network has been given when it was made.
#include "support/patterns.h"
#include "transport/world.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

namespace {

using namespace diomp_test;
using diomp::transport::memory_kind;
using diomp::transport::memory_range;

constexpr std::size_t sizes[] = {0,    1,    8,     13,     4096,
                                 8192, 8193, 65536, 300001, std::size_t{5} << 20};

world_rank rank_of(int number) { return world_rank{number}; }

/// One end of transfers.
class place {
public:
    place(memory_kind of, std::byte *at) : kind(of), base(at) {}

    memory_kind kind;
    std::byte *base;

    [[nodiscard]] memory_range range(std::size_t nbytes) const {
        return {kind, reinterpret_cast<std::uintptr_t>(base), nbytes};
    }
    void write(const std::vector<std::uint8_t> &bytes) const {
        copy(base, bytes.data(), bytes.size());
    }
    void fill(std::uint8_t with, std::size_t nbytes) const {
        write(std::vector<std::uint8_t>(nbytes, with));
    }
    [[nodiscard]] std::vector<std::uint8_t> read(std::size_t nbytes) const {
        std::vector<std::uint8_t> bytes(nbytes);
        copy(bytes.data(), base, nbytes);
        return bytes;
    }

private:
    void copy(void *to, const void *from, std::size_t nbytes) const {
        if (kind == memory_kind::host) {
            std::memcpy(to, from, nbytes);
        } else if (nbytes > 0) {
            ours().devices().copy(to, from, nbytes);
        }
    }
};

class devices_of_ranks : public testing::Test {
protected:
    void SetUp() override {
        if (!ours().devices().are_tested()) {
            GTEST_SKIP() << "the network is given no memory of devices";
        }
        std::byte *const mine = ours().devices().base();
        std::memcpy(ours().memory_of(ours().rank()), &mine, sizeof(mine));
        ours().meet();
        for (int each = 0; each < ours().size(); ++each) {
            std::byte *there = mine;
            if (each != ours().rank()) {
                ours().get(each, ours().memory_of(each), &there, sizeof(there));
            }
            bases_.push_back(there);
        }
        ours().meet();
    }
    [[nodiscard]] memory_kind kind() const { return ours().devices().kind(); }
    [[nodiscard]] int next() const { return (ours().rank() + 1) % ours().size(); }
    [[nodiscard]] int previous() const {
        return (ours().rank() + ours().size() - 1) % ours().size();
    }
    [[nodiscard]] std::byte *device_of(int rank) const {
        return bases_[static_cast<std::size_t>(rank)];
    }
    /// Where rank `owner` has memory of that kind, for what `with` sends; null where it has none.
    [[nodiscard]] place place_at(int owner, memory_kind of) const {
        return {of, of == memory_kind::host ? ours().memory_of(owner) : device_of(owner)};
    }
    [[nodiscard]] static bool can_transfer(int peer, const place &there, const place &here,
                                           std::size_t nbytes) {
        return ours().conduit().device()->can_transfer(rank_of(peer), there.range(nbytes),
                                                       here.range(nbytes));
    }
    static void put(int peer, const place &there, const place &here, std::size_t nbytes,
                    completion &source_free) {
        auto const started = ours().conduit().device()->put_device_memory(
            rank_of(peer), there.range(0).address, here.base, nbytes, {there.kind, here.kind},
            source_free);
        ASSERT_TRUE(started.ok()) << started.failure().message();
    }
    static void get(int peer, const place &there, const place &here, std::size_t nbytes,
                    completion &done) {
        auto const started = ours().conduit().device()->get_device_memory(
            rank_of(peer), there.range(0).address, here.base, nbytes, {there.kind, here.kind},
            done);
        ASSERT_TRUE(started.ok()) << started.failure().message();
    }
    /// Calls action(kind there, kind here) for all that need put_between.
    template <typename Action>
    void for_each_kind(Action &&action) const {
        action(kind(), memory_kind::host);
        action(memory_kind::host, kind());
        action(kind(), kind());
    }

private:
    std::vector<std::byte *> bases_; ///< [rank]
};

/// Half of each memory is for what comes, the other for what goes.
constexpr std::size_t half_bytes = device_ranges::num_bytes / 2;

TEST_F(devices_of_ranks, puts_are_there_after_flush) {
    int round = 0;
    for_each_kind([&](memory_kind there, memory_kind here) {
        place const target = place_at(next(), there);
        place const mine = place_at(ours().rank(), there);
        place source = place_at(ours().rank(), here);
        bool const sends = target.base != nullptr && source.base != nullptr;
        bool const receives = mine.base != nullptr && place_at(previous(), here).base != nullptr;
        for (std::size_t const nbytes : sizes) {
            auto const sent = pattern(ours().rank(), next(), ++round, nbytes);
            if (receives) {
                mine.fill(0x55, nbytes + 4);
            }
            ours().meet();
            if (sends) {
                place const from{here, source.base + half_bytes + round % 3};
                place const to{there, target.base + 3}; // at an odd place
                from.write(sent);
                EXPECT_TRUE(can_transfer(next(), to, from, nbytes));
                completion source_free;
                put(next(), to, from, nbytes, source_free);
                ours().flush(next());
                ours().wait(source_free);
            }
            ours().meet();
            if (receives) {
                auto expected = pattern(previous(), ours().rank(), round, nbytes);
                expected.insert(expected.begin(), 3, 0x55);
                expected.push_back(0x55);
                EXPECT_TRUE(mine.read(nbytes + 4) == expected) << nbytes;
            }
            ours().meet();
        }
    });
}

TEST_F(devices_of_ranks, gets) {
    int round = 0;
    for_each_kind([&](memory_kind there, memory_kind here) {
        place const source = place_at(next(), there);
        place const mine = place_at(ours().rank(), there);
        place const target = place_at(ours().rank(), here);
        for (std::size_t const nbytes : sizes) {
            ++round;
            if (mine.base != nullptr) {
                place{there, mine.base + 1}.write(pattern(ours().rank(), 0, round, nbytes));
            }
            ours().meet();
            if (source.base != nullptr && target.base != nullptr) {
                place const to{here, target.base + half_bytes + 5};
                to.fill(0x55, nbytes + 1);
                completion done;
                get(next(), {there, source.base + 1}, to, nbytes, done);
                ours().wait(done);
                auto expected = pattern(next(), 0, round, nbytes);
                expected.push_back(0x55);
                EXPECT_TRUE(to.read(nbytes + 1) == expected) << nbytes;
            }
            ours().meet();
        }
    });
}

// A flush covers them all; from several threads, among transfers of host memory.
TEST_F(devices_of_ranks, many_in_flight_among_others) {
    constexpr std::size_t num_threads = 3;
    constexpr std::size_t num_puts = 40;
    constexpr std::size_t nbytes = 20000;
    auto const there = [&](int owner, std::size_t number) {
        bool const is_host = number % 3 == 0 || device_of(owner) == nullptr;
        std::byte *const base = is_host ? ours().memory_of(owner) : device_of(owner);
        return place{is_host ? memory_kind::host : kind(), base + number * nbytes};
    };
    auto const sent = pattern(ours().rank(), next(), 1, nbytes);
    for (std::size_t number = 0; number < num_threads * num_puts; ++number) {
        there(ours().rank(), number).fill(0, nbytes);
    }
    ours().meet();
    {
        std::vector<std::jthread> threads;
        for (std::size_t thread = 0; thread < num_threads; ++thread) {
            threads.emplace_back([&, thread] {
                completion source_free;
                for (std::size_t i = 0; i < num_puts; ++i) {
                    place const to = there(next(), thread * num_puts + i);
                    auto *const from =
                        reinterpret_cast<std::byte *>(const_cast<std::uint8_t *>(sent.data()));
                    if (to.kind == memory_kind::host) {
                        ours().put(next(), to.base, from, nbytes);
                    } else {
                        put(next(), to, {memory_kind::host, from}, nbytes, source_free);
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
        ASSERT_TRUE(there(ours().rank(), i).read(nbytes) == expected) << i;
    }
    ours().meet();
}

// Others have to go another way, of which the network knows nothing.
TEST_F(devices_of_ranks, what_the_network_was_not_given_is_not_joined) {
    std::byte *const mine = ours().devices().base();
    place const host = place_at(ours().rank(), memory_kind::host);
    auto const reaches = [&](std::byte *at, std::size_t nbytes) {
        return ours().conduit().device()->supports_memory_range(place{kind(), at}.range(nbytes));
    };
    if (mine != nullptr) {
        EXPECT_TRUE(reaches(mine, device_ranges::num_bytes));
        EXPECT_FALSE(reaches(mine + 1, device_ranges::num_bytes));
        EXPECT_FALSE(reaches(mine - 1, 2));
        std::byte *const unknown = ours().devices().unknown();
        EXPECT_FALSE(reaches(unknown, 8));
        EXPECT_FALSE(
            can_transfer(next(), place_at(next(), memory_kind::host), {kind(), unknown}, 8));
    }
    completion none;
    memory_range outside = place_at(next(), kind()).range(8);
    outside.address += device_ranges::num_bytes - 4;
    auto &device = *ours().conduit().device();
    EXPECT_FALSE(device.can_transfer(rank_of(next()), outside, host.range(8)));
    auto const refused = device.put_device_memory(rank_of(next()), outside.address, host.base, 8,
                                                  {kind(), memory_kind::host}, none);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_TRUE(none.is_done());
    outside.nbytes = 4; // just inside
    EXPECT_EQ(device.can_transfer(rank_of(next()), outside, host.range(4)),
              device_of(next()) != nullptr);
    ours().meet();
}

// The vendor's library is there for each call of the network, and gone when it has been withdrawn.
TEST_F(devices_of_ranks, threads_work_in_the_scope_that_was_given) {
    std::atomic<int> num_entered{0};
    ours().conduit().device()->bind_device_context([&]() -> std::shared_ptr<void> {
        num_entered.fetch_add(1);
        return nullptr;
    });
    ours().poll();
    EXPECT_GT(num_entered.load(), 0);
    ours().conduit().device()->bind_device_context({});
    int const before = num_entered.load();
    ours().poll();
    EXPECT_EQ(num_entered.load(), before);
    ours().meet();
}

} // namespace
