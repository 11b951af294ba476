// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/constant_names.h"
#include "support/thread_ranks.h"
#include "sync/node_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <vector>

namespace diomp::sync {
namespace {

using test::thread_ranks;
using testing::HasSubstr;
using testing::Not;

/// One rendezvous of all ranks; the area is at the start of each slot.
class world_meeting {
public:
    explicit world_meeting(thread_ranks &ranks) {
        std::vector<std::byte *> areas;
        std::vector<world_rank> members;
        for (int rank = 0; rank < ranks.size(); ++rank) {
            members.emplace_back(rank);
            areas.push_back(ranks.arena().slot(world_rank{rank}));
        }
        for (int rank = 0; rank < ranks.size(); ++rank) {
            meetings_.push_back(std::make_unique<node_barrier>(
                ranks.engine(world_rank{rank}), areas, members, static_cast<std::size_t>(rank)));
        }
    }
    node_barrier &of(world_rank rank) { return *meetings_[rank.index()]; }

private:
    std::vector<std::unique_ptr<node_barrier>> meetings_;
};

constexpr call_signature barrier{.what = operation::barrier};

class rendezvous_sizes : public testing::TestWithParam<int> {};

TEST_P(rendezvous_sizes, everybody_sees_what_everybody_brought) {
    thread_ranks ranks(GetParam());
    world_meeting world(ranks);
    std::atomic<int> wrong{0};
    constexpr std::uint64_t num_meetings = 300;
    ranks.run([&](world_rank self) {
        for (std::uint64_t round = 0; round < num_meetings; ++round) {
            node_barrier &own = world.of(self);
            if (!own.arrive_and_wait(barrier,
                                     {self.index(), round, self.index() * round, ~round, 7})) {
                ++wrong;
            }
            for (std::size_t peer = 0; peer < static_cast<std::size_t>(ranks.size()); ++peer) {
                round_payload const expected{peer, round, peer * round, ~round, 7};
                wrong += own.payload_of(peer) == expected ? 0 : 1;
            }
        }
    });
    EXPECT_EQ(wrong, 0);
}

TEST_P(rendezvous_sizes, nobody_leaves_before_all_have_come) {
    thread_ranks ranks(GetParam());
    world_meeting world(ranks);
    std::vector<std::size_t> entered(static_cast<std::size_t>(ranks.size())); // plain: TSan looks
    std::atomic<int> early{0};
    ranks.run([&](world_rank self) {
        for (std::size_t round = 1; round <= 100; ++round) {
            entered[self.index()] = round;
            EXPECT_TRUE(world.of(self).arrive_and_wait(barrier).ok());
            for (std::size_t const each : entered) {
                early += each < round ? 1 : 0;
            }
            EXPECT_TRUE(world.of(self).arrive_and_wait(barrier).ok());
        }
    });
    EXPECT_EQ(early, 0);
}

TEST_P(rendezvous_sizes, different_calls_are_told_to_all_and_the_next_meeting_works) {
    if (GetParam() == 1) {
        return; // nobody to disagree with
    }
    thread_ranks ranks(GetParam());
    world_meeting world(ranks);
    int const odd_one = GetParam() - 1;
    ranks.run([&](world_rank self) {
        for (int round = 0; round < 20; ++round) {
            call_signature call{.what = operation::bcast, .root = 1, .amount = 8};
            if (self.value() == odd_one) {
                call = {.what = operation::allreduce,
                        .reduction = OMPX_SUM,
                        .type = OMPX_DOUBLE,
                        .amount = 4};
            }
            status const met = world.of(self).arrive_and_wait(call);
            ASSERT_FALSE(met.ok());
            EXPECT_EQ(met.failure().code(), OMPX_ERR_MISMATCH);
            EXPECT_EQ(
                met.failure().message(),
                "ranks disagree about a collective call: rank 0 made ompx_bcast(root=1, nbytes=8), "
                "rank " +
                    std::to_string(odd_one) +
                    " made ompx_allreduce(count=4, type=OMPX_DOUBLE, op=OMPX_SUM)");
            EXPECT_TRUE(world.of(self).arrive_and_wait(barrier).ok());
        }
    });
}

constexpr call_signature word_from_last{.what = operation::bcast, .root = 0, .amount = 8};
constexpr call_signature words_to_first{.what = operation::gather, .root = 0, .amount = 8};

std::uint64_t word_of(std::size_t member, std::uint64_t round) { return round << 8U | member; }

std::uint64_t read_brief(const node_barrier &from, std::size_t member) {
    std::uint64_t word = 0;
    std::memcpy(&word, from.short_data_of(member), sizeof(word));
    return word;
}

/// What all members together count; each is given its own place and the last one.
template <typename Member>
int sum_over_members(int num, Member &&count) {
    thread_ranks ranks(num);
    world_meeting world(ranks);
    std::atomic<int> sum{0};
    ranks.run([&](world_rank self) {
        node_barrier &own = world.of(self);
        sum += count(own, self.index(), static_cast<std::size_t>(num - 1));
    });
    return sum;
}

// Several rings of calls, among calls of other kinds, so that words stand at every place of a line.
TEST_P(rendezvous_sizes, brief_words_arrive_in_both_directions) {
    auto const member = [](node_barrier &own, std::size_t self, std::size_t last) {
        int wrong = 0;
        for (std::uint64_t round = 0; round < 1000; ++round) {
            bool const sends = self == last;
            wrong += (sends ? own.short_arrive(word_from_last, word_of(last, round))
                            : own.arrive(word_from_last, {}))
                         ? 0
                         : 1;
            if (!sends) {
                wrong += own.wait_for_short(last) ? 0 : 1;
                wrong += read_brief(own, last) == word_of(last, round) ? 0 : 1;
                wrong += own.payload_of(last)[0] == word_of(last, round) ? 0 : 1;
            }
            if (round % 3 != 0) {
                continue;
            }
            wrong += own.short_arrive(words_to_first, word_of(self, ~round)) ? 0 : 1;
            for (std::size_t each = 0; self == 0 && each <= last; ++each) {
                wrong += own.wait_for_short(each) ? 0 : 1;
                wrong += read_brief(own, each) == word_of(each, ~round) ? 0 : 1;
            }
            if (round % 7 == 0) {
                wrong += own.arrive_and_wait(barrier) ? 0 : 1;
            }
        }
        return wrong;
    };
    EXPECT_EQ(sum_over_members(GetParam(), member), 0);
}

// As members do that compare with everybody.
TEST_P(rendezvous_sizes, a_brief_word_may_also_come_by_line) {
    auto const member = [](node_barrier &own, std::size_t self, std::size_t last) {
        int wrong = 0;
        for (std::uint64_t round = 0; round < 300; ++round) {
            if (self == last) {
                round_payload const word{word_of(last, round)};
                wrong += own.arrive(word_from_last, word) ? 0 : 1;
                continue;
            }
            wrong += own.arrive(word_from_last, {}) ? 0 : 1;
            wrong += own.wait_for_short(last) ? 0 : 1;
            wrong += read_brief(own, last) == word_of(last, round) ? 0 : 1;
        }
        return wrong;
    };
    EXPECT_EQ(sum_over_members(GetParam(), member), 0);
}

// Whoever expects a word learns of another call, brief or not, and the next one works.
TEST_P(rendezvous_sizes, who_expects_a_brief_word_learns_of_another_call) {
    if (GetParam() == 1) {
        return; // nobody to disagree with
    }
    thread_ranks ranks(GetParam());
    world_meeting world(ranks);
    auto const last = static_cast<std::size_t>(GetParam() - 1);
    std::vector<std::function<status(node_barrier &)>> const others{
        [](node_barrier &own) {
            return own.arrive({.what = operation::allgather, .amount = 8}, {});
        },
        [](node_barrier &own) {
            return own.short_arrive({.what = operation::bcast, .root = 0, .amount = 4}, 5);
        },
        [](node_barrier &own) {
            return own.short_arrive({.what = operation::bcast, .root = 1, .amount = 8}, 5);
        }};
    ranks.run([&](world_rank self) {
        node_barrier &own = world.of(self);
        for (std::size_t round = 0; round < 30; ++round) {
            if (self.index() == last) {
                EXPECT_TRUE(others[round % others.size()](own).ok());
            } else {
                EXPECT_TRUE(own.arrive(word_from_last, {}).ok());
                status const told = own.wait_for_short(last);
                ASSERT_FALSE(told.ok());
                EXPECT_EQ(told.failure().code(), OMPX_ERR_MISMATCH);
                EXPECT_THAT(told.failure().message(), HasSubstr("ompx_bcast(root=0, nbytes=8)"));
            }
            // Those that have not been told by a word may be told here.
            EXPECT_TRUE(own.arrive_and_wait(barrier).ok());
            status const late = own.take_late_mismatch();
            EXPECT_TRUE(late.ok() || late.failure().code() == OMPX_ERR_MISMATCH);
            EXPECT_TRUE(own.arrive_and_wait(barrier).ok());
            EXPECT_TRUE(own.take_late_mismatch().ok());
        }
    });
}

INSTANTIATE_TEST_SUITE_P(sizes, rendezvous_sizes, testing::Values(1, 2, 3, 4, 8, 16, 17, 24));

class rendezvous_timeouts : public testing::TestWithParam<int> {};

TEST_P(rendezvous_timeouts, name_the_missing_and_leave_the_meeting_usable) {
    thread_ranks ranks(GetParam(), 1 << 16,
                       {.spin_count = 1, .timeout_s = 1, .progress_thread = false});
    world_meeting world(ranks);
    std::atomic<int> given_up{0};
    int const late = GetParam() - 1;
    ranks.run([&](world_rank self) {
        if (self.value() != late) {
            status const met = world.of(self).arrive_and_wait(barrier);
            ASSERT_FALSE(met.ok());
            EXPECT_EQ(met.failure().code(), OMPX_ERR_TIMEOUT);
            EXPECT_THAT(met.failure().message(), HasSubstr("in ompx_barrier()"));
            EXPECT_THAT(met.failure().message(),
                        HasSubstr("waiting for rank " + std::to_string(late) + " in"));
            ++given_up;
        } else {
            while (given_up < late) {
                std::this_thread::yield();
            }
            // The others have entered, and their calls count.
            EXPECT_TRUE(world.of(self).arrive_and_wait(barrier).ok());
        }
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(world.of(self).arrive_and_wait(barrier).ok());
        }
    });
}

INSTANTIATE_TEST_SUITE_P(sizes, rendezvous_timeouts, testing::Values(2, 3, 18));

TEST(call_signature, is_described_as_the_call_was_written) {
    EXPECT_EQ(describe({.what = operation::barrier}), "ompx_barrier()");
    EXPECT_EQ(describe({.what = operation::gather, .root = 3, .amount = 0}),
              "ompx_gather(root=3, nbytes=0)");
    EXPECT_EQ(describe({.what = operation::reduce,
                        .reduction = call_signature::user_operator,
                        .root = 0,
                        .type = 0x10000 + 24,
                        .amount = 5}),
              "ompx_reduce(root=0, count=5, type=OMPX_TYPE_OF_SIZE(24), op=user-defined)");
    EXPECT_EQ(describe({.what = operation::alloc_symmetric,
                        .type = 6U << 24 | call_signature::hash_offset(4096),
                        .amount = 1000}),
              "symmetric allocation(nbytes=1000, alignment=64)");
    EXPECT_EQ(describe({.what = operation::finalize}), "ompx_finalize()");
    EXPECT_THAT(diomp::type_name(77), HasSubstr("unknown"));
    EXPECT_THAT(diomp::operator_name(OMPX_BXOR), Not(HasSubstr("unknown")));
}

TEST(call_signature, allocations_of_one_size_agree_unless_both_have_memory_at_other_offsets) {
    auto const at = [](std::uint32_t hash) {
        return call_signature{
            .what = operation::alloc_symmetric, .type = 6U << 24 | hash, .amount = 1000};
    };
    std::uint32_t const here = call_signature::hash_offset(4096);
    std::uint32_t const there = call_signature::hash_offset(8192);
    EXPECT_TRUE(at(here) == at(here));
    EXPECT_TRUE(at(here) == at(0));
    EXPECT_FALSE(at(here) == at(there));
    EXPECT_THAT(mismatch_error(world_rank{0}, at(here), world_rank{1}, at(there)).message(),
                HasSubstr("has another offset on rank 0 than on rank 1"));
    call_signature larger = at(there);
    larger.amount = 2000;
    EXPECT_THAT(mismatch_error(world_rank{0}, at(here), world_rank{1}, larger).message(),
                HasSubstr("ranks disagree about a collective call"));
}

TEST(call_signature, a_mismatch_of_sizes_alone_has_another_remedy) {
    call_signature const some{.what = operation::allgatherv, .amount = 1};
    call_signature const others{.what = operation::allgatherv, .amount = 2};
    world_rank const one{0};
    world_rank const two{1};
    EXPECT_THAT(mismatch_error(one, some, two, others).remedy(), HasSubstr("sizes of the blocks"));
    EXPECT_THAT(mismatch_error(one, some, two, {.what = operation::gatherv, .amount = 2}).remedy(),
                HasSubstr("in the same order"));
    EXPECT_THAT(mismatch_error(one, {.what = operation::bcast, .amount = 1}, two,
                               {.what = operation::bcast, .amount = 2})
                    .remedy(),
                HasSubstr("in the same order"));
}

} // namespace
} // namespace diomp::sync
