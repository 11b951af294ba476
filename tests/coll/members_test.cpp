// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of endpoints, and those with sizes of their own, with threads as ranks on one or
// several nodes.
#include "coll/requests.h"
#include "coll/thread_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace diomp::coll {
namespace {

using sync::operation;
using test::draw;
using test::options_for;
using test::request_of;
using test::storage;
using test::thread_groups;
using test::trial;
using test::trial_buffers;
using testing::HasSubstr;

constexpr std::size_t slot_bytes = std::size_t{32} << 20;
/// The workspace's part of a slot; buffers lie behind it.
constexpr std::size_t workspace_bytes = std::size_t{8} << 20;

/// Who is where: the node of each rank, and the group's endpoints.
struct layout {
    std::vector<std::int32_t> nodes;
    std::vector<ompx_endpoint_t> endpoints;
};

std::vector<layout> layouts() {
    return {
        {{0, 0}, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}},             // two devices each
        {{0, 0}, {{0, 0}, {1, 0}, {0, 1}, {1, 1}}},             // dealt out
        {{0, 0, 0}, {{2, 3}, {0, 0}, {0, 1}, {1, -1}, {0, 2}}}, // uneven, and a host
        {{0}, {{0, 2}, {0, 0}, {0, 1}}},                        // one rank
        {{0, 1}, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}},             // two nodes
        {{0, 1, 0, 1}, {{0, 0}, {0, 1}, {1, 0}, {2, 1}, {3, 0}, {3, 2}}},
        {{0, 1, 1}, {{1, 0}, {0, 0}, {1, 1}, {2, 0}, {0, 1}}}, // dealt out over nodes
        {{0, 0, 0, 0}, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}},      // one each
    };
}

class member_calls : public testing::TestWithParam<layout> {
protected:
    /// In all ranks of the layout, with their group.
    template <typename Body>
    void run(Body &&body) {
        auto ranks = std::make_unique<test::thread_ranks>(static_cast<int>(GetParam().nodes.size()),
                                                          slot_bytes);
        thread_groups job(std::move(ranks), workspace_bytes, GetParam().nodes);
        job.run([&](world_rank self) {
            auto const made = job.registry(self).create_endpoints(GetParam().endpoints);
            ASSERT_TRUE(made.ok()) << made.failure().message();
            body(job, self, *job.registry(self).find(made.value()).value());
            EXPECT_TRUE(job.registry(self).free(made.value()).ok());
        });
    }
    static std::span<const std::uint32_t> own_of(const group::group &members) {
        return members.endpoints().of(members.self().index());
    }
};
INSTANTIATE_TEST_SUITE_P(layouts, member_calls, testing::ValuesIn(layouts()));

void run_trial(collectives &all, group::group &members, const trial &t, storage &memory,
               bool global) {
    auto const own = members.endpoints().of(members.self().index());
    std::vector<std::unique_ptr<trial_buffers>> buffers;
    std::vector<endpoint_buffers> given;
    for (std::size_t place = 0; place < own.size(); ++place) {
        std::size_t const nbytes = trial_buffers::storage_bytes(t, members.count());
        buffers.push_back(std::make_unique<trial_buffers>(t, members.count(), own[place],
                                                          memory.at(global, place, nbytes)));
        given.push_back({buffers.back()->dst(), buffers.back()->src(), nullptr});
    }
    status const ran = all.run(members, request_of(t, *buffers.front()), given);
    ASSERT_TRUE(ran.ok()) << to_string(t) << ": " << ran.failure().message();
    for (auto const &each : buffers) {
        each->check();
    }
}

TEST_P(member_calls, random_calls_match_the_reference) {
    run([](thread_groups &job, world_rank self, group::group &members) {
        for (bool const oversubscribed : {false, true}) {
            options chosen = options_for(job, oversubscribed);
            if (oversubscribed && self.value() == 1) { // as on a core with another cache
                chosen.shared_bcast_min_bytes *= 2;
            }
            collectives all(chosen);
            storage memory(job, self, workspace_bytes);
            std::mt19937_64 random(members.count() * 2 + (oversubscribed ? 1 : 0));
            for (int round = 0; round < 90 && !testing::Test::HasFailure(); ++round) {
                trial const t = draw(random, static_cast<int>(members.count()),
                                     round % 3 == 0 ? std::size_t{200} << 10 : 3000);
                bool const global = random() % 2 == 0;
                bool const differs = random() % 4 == 0 && self.value() == t.root % 3;
                run_trial(all, members, t, memory, global != differs);
            }
        }
    });
}

// ---- v forms ----

/// Byte `i` of the block that `from` has for `to`.
std::byte content(std::uint64_t number, std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<std::byte>(test::scramble(number + from * 977 + to * 31 + i / 7) + i);
}

struct varying_trial {
    std::uint64_t number = 0;
    operation what = operation::gatherv;
    std::size_t most_bytes = 0;
    int root = 0;
    bool has_gaps = false;

    /// Of the block from one member for another; only `alltoallv` has one for each pair.
    [[nodiscard]] std::size_t block(std::size_t from, std::size_t to) const {
        std::size_t const other = what == operation::alltoallv ? to : 0;
        std::uint64_t const drawn = test::scramble(number * 7 + from * 131 + other * 17);
        return drawn % 4 == 0 ? 0 : drawn / 4 % (most_bytes + 1);
    }
    [[nodiscard]] std::size_t pattern_to(std::size_t to) const {
        return what == operation::gatherv || what == operation::allgatherv ? 0 : to;
    }
};

/// A buffer of one endpoint with a block for each member of the group.
class blocks_buffer {
public:
    static constexpr std::byte untouched{0x77};

    template <typename Size>
    blocks_buffer(std::size_t num, bool has_gaps, Size &&size) {
        std::size_t at = has_gaps ? 5 : 0;
        for (std::size_t i = 0; i < num; ++i) {
            list_.nbytes.push_back(size(i));
            list_.offsets.push_back(at);
            at += list_.nbytes.back() + (has_gaps ? 1 + i % 3 : 0);
        }
        nbytes_ = at;
    }
    void place(std::byte *where) {
        data_ = where;
        std::fill_n(data_, nbytes_, untouched);
    }
    [[nodiscard]] std::size_t nbytes() const { return nbytes_; }
    [[nodiscard]] const block_list &list() const { return list_; }
    [[nodiscard]] std::byte *data() const { return data_; }
    template <typename Content>
    void fill(Content &&content_of) {
        for (std::size_t block = 0; block < list_.nbytes.size(); ++block) {
            for (std::size_t i = 0; i < list_.nbytes[block]; ++i) {
                data_[list_.offsets[block] + i] = content_of(block, i);
            }
        }
    }
    /// That the blocks hold this, and nothing else was written.
    template <typename Content>
    [[nodiscard]] bool holds(Content &&content_of) const {
        std::vector<std::byte> expected(nbytes_, untouched);
        blocks_buffer wanted = *this;
        wanted.data_ = expected.data();
        wanted.fill(content_of);
        return std::equal(expected.begin(), expected.end(), data_);
    }

private:
    block_list list_;
    std::size_t nbytes_ = 0;
    std::byte *data_ = nullptr;
};

/// One endpoint's side of a v call.
struct varying_side {
    varying_side(const varying_trial &t, std::size_t num, std::size_t self)
        : outgoing(num, t.has_gaps,
                   [&](std::size_t to) {
                       return t.what == operation::scatterv ? t.block(to, 0) : t.block(self, to);
                   }),
          incoming(num, t.has_gaps, [&](std::size_t from) { return t.block(from, self); }),
          single(t.what == operation::scatterv ? t.block(self, 0) : t.block(self, 0)) {}
    blocks_buffer outgoing; ///< scatterv, alltoallv
    blocks_buffer incoming; ///< gatherv, allgatherv, alltoallv
    std::size_t single;     ///< bytes of the other buffer where there is one block
};

void run_varying(collectives &all, group::group &members, const varying_trial &t, storage &memory,
                 bool global) {
    auto const own = members.endpoints().of(members.self().index());
    std::size_t const num = members.count();
    std::vector<varying_side> sides;
    std::vector<endpoint_buffers> given;
    request asked;
    asked.what = t.what;
    asked.root = t.what == operation::gatherv || t.what == operation::scatterv ? t.root : -1;
    std::size_t const most = (num + 1) * (t.most_bytes + 8);
    for (std::size_t place = 0; place < own.size(); ++place) {
        std::size_t const self = own[place];
        varying_side &side = sides.emplace_back(t, num, self);
        side.incoming.place(memory.at(global, 2 * place, most));
        side.outgoing.place(memory.at(global, 2 * place + 1, most));
        bool const scatters = t.what == operation::scatterv;
        bool const single_src = t.what == operation::gatherv || t.what == operation::allgatherv;
        auto lists = std::make_shared<block_lists>();
        if (!scatters) {
            lists->dst = side.incoming.list();
        }
        if (!single_src) {
            lists->src = side.outgoing.list();
        }
        if (single_src) {
            for (std::size_t i = 0; i < side.single; ++i) {
                side.outgoing.data()[i] = content(t.number, self, 0, i);
            }
        } else {
            side.outgoing.fill(
                [&](std::size_t to, std::size_t i) { return content(t.number, self, to, i); });
        }
        bool const is_root = static_cast<int>(self) == t.root;
        bool const has_dst = t.what != operation::gatherv || is_root;
        bool const has_src = !scatters || is_root;
        given.push_back({has_dst ? side.incoming.data() : nullptr,
                         has_src ? side.outgoing.data() : nullptr,
                         t.what == operation::alltoallv ? lists : nullptr});
        asked.blocks = lists;
    }
    status const ran = all.run(members, asked, given);
    ASSERT_TRUE(ran.ok()) << ran.failure().message();
    for (std::size_t place = 0; place < own.size(); ++place) {
        const varying_side &side = sides[place];
        std::size_t const self = own[place];
        bool const is_root = static_cast<int>(self) == t.root;
        if (t.what == operation::scatterv) {
            bool right = true;
            for (std::size_t i = 0; i < side.single; ++i) {
                right = right && side.incoming.data()[i] ==
                                     content(t.number, static_cast<std::size_t>(t.root), self, i);
            }
            EXPECT_TRUE(right) << "scatterv at " << self;
        } else if (t.what != operation::gatherv || is_root) {
            EXPECT_TRUE(side.incoming.holds([&](std::size_t from, std::size_t i) {
                return content(t.number, from, t.pattern_to(self), i);
            })) << "operation "
                << static_cast<int>(t.what) << " at " << self;
        }
    }
}

TEST_P(member_calls, blocks_of_any_size_arrive) {
    run([](thread_groups &job, world_rank self, group::group &members) {
        collectives all(options_for(job));
        storage memory(job, self, workspace_bytes);
        std::mt19937_64 random(members.count());
        constexpr operation operations[] = {operation::gatherv, operation::scatterv,
                                            operation::allgatherv, operation::alltoallv};
        constexpr std::size_t sizes[] = {0, 20, 1500, 9000, 100000};
        for (int round = 0; round < 40 && !testing::Test::HasFailure(); ++round) {
            varying_trial t;
            t.number = random();
            t.what = operations[random() % 4];
            t.most_bytes = sizes[random() % 5];
            t.root = static_cast<int>(random() % members.count());
            t.has_gaps = random() % 2 == 0;
            bool const global = random() % 2 == 0;
            bool const differs = random() % 4 == 0 && self.value() == 0;
            run_varying(all, members, t, memory, global != differs);
        }
    });
}

// ---- Operators and mistakes ----

TEST_P(member_calls, the_average_is_the_sum_divided_by_the_members) {
    run([](thread_groups &job, world_rank, group::group &members) {
        collectives all(options_for(job));
        for (std::size_t const count : {std::size_t{3}, std::size_t{20000}}) {
            std::vector<std::vector<double>> values(own_of(members).size());
            std::vector<endpoint_buffers> given;
            for (std::size_t place = 0; place < values.size(); ++place) {
                values[place].assign(count, static_cast<double>(own_of(members)[place]));
                given.push_back({values[place].data(), values[place].data(), nullptr});
            }
            request const asked{
                .what = operation::allreduce, .amount = count, .type = OMPX_DOUBLE, .op = OMPX_AVG};
            ASSERT_TRUE(all.run(members, asked, given).ok());
            double const expected = static_cast<double>(members.count() - 1) / 2;
            for (auto const &each : values) {
                EXPECT_EQ(each, std::vector<double>(count, expected));
            }
        }
    });
}

// Concatenation of digits: the order shows in the result.
void append(void *inout, const void *in, std::size_t count, ompx_type_t, void *) {
    struct digits {
        std::uint32_t value, num;
    };
    for (std::size_t i = 0; i < count; ++i) {
        digits a;
        digits b;
        std::memcpy(&a, static_cast<std::byte *>(inout) + i * sizeof(a), sizeof(a));
        std::memcpy(&b, static_cast<const std::byte *>(in) + i * sizeof(b), sizeof(b));
        std::uint32_t shift = 1;
        for (std::uint32_t digit = 0; digit < b.num; ++digit) {
            shift *= 10;
        }
        a = {a.value * shift + b.value, a.num + b.num};
        std::memcpy(static_cast<std::byte *>(inout) + i * sizeof(a), &a, sizeof(a));
    }
}

TEST_P(member_calls, operators_that_do_not_commute_see_endpoints_in_order) {
    run([](thread_groups &job, world_rank, group::group &members) {
        collectives all(options_for(job));
        ompx_op_t const op = all.operators().create(append, nullptr, false).value();
        for (std::size_t const count : {1U, 70U, 9000U}) {
            for (operation const what :
                 {operation::allreduce, operation::reduce_scatter, operation::scan}) {
                std::size_t const blocks = what == operation::reduce_scatter ? members.count() : 1;
                std::vector<std::vector<std::uint32_t>> sources;
                std::vector<std::vector<std::uint32_t>> results;
                std::vector<endpoint_buffers> given;
                for (std::uint32_t const self : own_of(members)) {
                    std::vector<std::uint32_t> &src = sources.emplace_back();
                    for (std::size_t i = 0; i < blocks * count; ++i) {
                        src.insert(src.end(), {self + 1, 1});
                    }
                    results.emplace_back(2 * count);
                }
                for (std::size_t place = 0; place < sources.size(); ++place) {
                    given.push_back({results[place].data(), sources[place].data(), nullptr});
                }
                request const asked{
                    .what = what, .amount = count, .type = OMPX_TYPE_OF_SIZE(8), .op = op};
                ASSERT_TRUE(all.run(members, asked, given).ok());
                for (std::size_t place = 0; place < results.size(); ++place) {
                    std::size_t const last =
                        what == operation::scan ? own_of(members)[place] + 1 : members.count();
                    std::uint32_t expected = 0;
                    for (std::uint32_t digit = 1; digit <= last; ++digit) {
                        expected = expected * 10 + digit;
                    }
                    EXPECT_EQ(results[place].front(), expected);
                    EXPECT_EQ(results[place][2 * count - 2], expected);
                }
            }
        }
    });
}

TEST_P(member_calls, sizes_that_do_not_agree_are_an_error_on_all) {
    if (GetParam().nodes.size() == 1) {
        GTEST_SKIP() << "one rank has one list";
    }
    run([](thread_groups &job, world_rank self, group::group &members) {
        collectives all(options_for(job));
        std::size_t const num = members.count();
        std::vector<std::byte> memory(num * 100);
        auto const give = [&](operation what, std::size_t own_bytes) {
            auto lists = std::make_shared<block_lists>();
            lists->dst.nbytes.assign(num, own_bytes);
            lists->dst.offsets.assign(num, 0);
            if (what == operation::alltoallv) {
                lists->src.nbytes.assign(num, 40);
                lists->src.offsets.assign(num, 0);
            }
            request asked;
            asked.what = what;
            asked.blocks = lists;
            std::vector<endpoint_buffers> const given(own_of(members).size(),
                                                      {memory.data(), memory.data(), nullptr});
            return all.run(members, asked, given);
        };
        bool const odd = self.value() == 1;
        for (operation const what : {operation::allgatherv, operation::alltoallv}) {
            status const ran = give(what, odd ? 41 : 40);
            ASSERT_FALSE(ran.ok());
            EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH) << ran.failure().message();
            EXPECT_TRUE(give(what, 40).ok());
        }
    });
}

TEST_P(member_calls, endpoints_as_roots_are_told_apart) {
    if (GetParam().nodes.size() == 1) {
        GTEST_SKIP() << "one rank makes one call";
    }
    run([](thread_groups &job, world_rank self, group::group &members) {
        collectives all(options_for(job, false, true));
        std::vector<double> buffer(3000);
        std::vector<endpoint_buffers> const given(own_of(members).size(),
                                                  {buffer.data(), nullptr, nullptr});
        // The last member and rank 0's first endpoint: different places, perhaps the same rank.
        int const root = self.value() == 0 ? 0 : static_cast<int>(members.count()) - 1;
        request const asked{.what = operation::bcast, .amount = 24000, .root = root};
        status const ran = all.run(members, asked, given);
        ASSERT_FALSE(ran.ok());
        EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH);
    });
}

} // namespace
} // namespace diomp::coll
