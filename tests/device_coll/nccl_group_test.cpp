// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A vendor's group with all endpoints in one process, on the stand-ins: what calls give.
#include "device_coll/nccl_fixture.h"

#include <thread>

namespace diomp::device_coll::vendor {
namespace {

using coll::block_list;
using coll::block_lists;
using coll::endpoint_buffers;
using coll::request;
using sync::operation;
using test::endpoint_memory;
using test::nccl_test;

class sizes_test : public nccl_test, public ::testing::WithParamInterface<int> {};

TEST_P(sizes_test, calls_give_what_the_reference_gives) {
    make_group(GetParam());
    std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < 100 && !HasFailure(); ++i) {
        own_->run_and_check(test::draw_possible(random, GetParam(), 20000));
    }
    EXPECT_GT(calls("ncclCommInitRankConfig"), 0);
}

/// Every type that can be combined with every operator that is there, at least once.
TEST_P(sizes_test, types_and_operators) {
    make_group(GetParam());
    std::uint64_t number = 1000;
    int tried = 0;
    for (ompx_type_t type = OMPX_INT8; type <= OMPX_BOOL; ++type) {
        for (ompx_op_t op = OMPX_SUM; op <= OMPX_LOR && !HasFailure(); ++op) {
            test::trial const t{.number = ++number,
                                .what = test::kind::allreduce,
                                .type = type,
                                .op = op,
                                .count = 33,
                                .root = 0,
                                .in_place = op == OMPX_PROD};
            if (supports(test::request_of(t))) {
                own_->run_and_check(t);
                ++tried;
            }
        }
    }
    EXPECT_EQ(tried, 32); // minima and maxima of floating types are not the library's
}

TEST_P(sizes_test, average) {
    make_group(GetParam());
    auto const count = static_cast<std::size_t>(GetParam());
    std::vector<endpoint_buffers> with;
    for (std::size_t i = 0; i < count; ++i) {
        auto *const values = reinterpret_cast<double *>(own_->memory(i).image());
        values[0] = static_cast<double>(i);
        values[1] = 8;
        own_->memory(i).upload();
        with.push_back({own_->memory(i).base(), own_->memory(i).base(), nullptr});
    }
    ASSERT_TRUE(
        own_->run({.what = operation::allreduce, .amount = 2, .type = OMPX_DOUBLE, .op = OMPX_AVG},
                  with)
            .ok());
    for (std::size_t i = 0; i < count; ++i) {
        own_->memory(i).download();
        auto const *const values = reinterpret_cast<const double *>(own_->memory(i).image());
        EXPECT_EQ(values[0], static_cast<double>(count - 1) / 2);
        EXPECT_EQ(values[1], 8);
    }
}

/// Sizes for each member, some of them zero, blocks in reverse order with gaps.
block_list list_of(std::size_t count, std::size_t step) {
    block_list made;
    made.nbytes.resize(count);
    made.offsets.resize(count);
    std::size_t end = 0;
    for (std::size_t block = count; block-- > 0;) {
        made.nbytes[block] = (block * 7 + step) % 5 * 100;
        made.offsets[block] = end;
        end += made.nbytes[block] + 16;
    }
    return made;
}

std::shared_ptr<const block_lists> lists(block_list dst, block_list src) {
    return std::make_shared<block_lists>(block_lists{std::move(dst), std::move(src)});
}

std::byte brought(std::size_t from, std::size_t to, std::size_t at) {
    return static_cast<std::byte>(from * 71 + to * 31 + at + 1);
}

/// Blocks as [block] from their owner to `to`.
void expect_blocks(const std::byte *at, const block_list &as, std::size_t to) {
    for (std::size_t block = 0; block < as.nbytes.size(); ++block) {
        for (std::size_t i = 0; i < as.nbytes[block]; ++i) {
            ASSERT_EQ(at[as.offsets[block] + i], brought(block, to, i))
                << "block " << block << ", byte " << i << ", at " << to;
        }
        ASSERT_EQ(at[as.offsets[block] + as.nbytes[block]], std::byte{0}) << "behind " << block;
    }
}

class sized_test : public sizes_test {
protected:
    static constexpr std::size_t src_at = endpoint_memory::size_bytes / 2;
    void prepare() {
        make_group(GetParam());
        count_ = static_cast<std::size_t>(GetParam());
        for (std::size_t i = 0; i < count_; ++i) {
            std::memset(own_->memory(i).image(), 0, endpoint_memory::size_bytes);
        }
    }
    std::byte *src(std::size_t member) { return own_->memory(member).image() + src_at; }
    void upload() {
        for (std::size_t i = 0; i < count_; ++i) {
            own_->memory(i).upload();
        }
    }
    void run(const request &asked, const std::vector<endpoint_buffers> &with) {
        status const outcome = own_->run(asked, with);
        ASSERT_TRUE(outcome.ok()) << outcome.failure().message();
        for (std::size_t i = 0; i < count_; ++i) {
            own_->memory(i).download();
        }
    }
    std::size_t count_ = 0;
};

TEST_P(sized_test, gather_and_allgather) {
    prepare();
    block_list const as = list_of(count_, 3);
    for (operation const what : {operation::gatherv, operation::allgatherv}) {
        int const root = what == operation::gatherv ? static_cast<int>(count_) - 1 : -1;
        std::vector<endpoint_buffers> with;
        for (std::size_t i = 0; i < count_; ++i) {
            std::memset(own_->memory(i).image(), 0, src_at);
            for (std::size_t k = 0; k < as.nbytes[i]; ++k) {
                src(i)[k] = brought(i, 0, k);
            }
            bool const receives = root < 0 || static_cast<int>(i) == root;
            with.push_back({receives ? own_->memory(i).base() : nullptr,
                            own_->memory(i).base() + src_at, nullptr});
        }
        upload();
        run({.what = what, .root = root, .blocks = lists(as, {})}, with);
        for (std::size_t i = 0; i < count_; ++i) {
            if (root < 0 || static_cast<int>(i) == root) {
                expect_blocks(own_->memory(i).image(), as, 0);
            } else {
                EXPECT_EQ(own_->memory(i).image()[0], std::byte{0}) << "written at " << i;
            }
        }
    }
}

TEST_P(sized_test, scatter) {
    prepare();
    block_list const as = list_of(count_, 4);
    for (std::size_t block = 0; block < count_; ++block) {
        for (std::size_t k = 0; k < as.nbytes[block]; ++k) {
            src(0)[as.offsets[block] + k] = brought(0, block, k);
        }
    }
    std::vector<endpoint_buffers> with;
    for (std::size_t i = 0; i < count_; ++i) {
        with.push_back(
            {own_->memory(i).base(), i == 0 ? own_->memory(i).base() + src_at : nullptr, nullptr});
    }
    upload();
    run({.what = operation::scatterv, .root = 0, .blocks = lists({}, as)}, with);
    for (std::size_t i = 0; i < count_; ++i) {
        for (std::size_t k = 0; k < as.nbytes[i]; ++k) {
            ASSERT_EQ(own_->memory(i).image()[k], brought(0, i, k)) << "at " << i;
        }
        EXPECT_EQ(own_->memory(i).image()[as.nbytes[i]], std::byte{0});
    }
}

/// From i to j go as many bytes as the list of j says for i.
TEST_P(sized_test, alltoall) {
    prepare();
    std::vector<block_list> to;
    std::vector<block_list> from;
    for (std::size_t i = 0; i < count_; ++i) {
        to.push_back(list_of(count_, i + 1));
        from.push_back(list_of(count_, 0));
    }
    std::vector<endpoint_buffers> with;
    for (std::size_t i = 0; i < count_; ++i) {
        std::size_t end = 0;
        for (std::size_t j = 0; j < count_; ++j) {
            from[i].nbytes[j] = to[j].nbytes[i];
            from[i].offsets[j] = end;
            end += to[j].nbytes[i] + 8;
            for (std::size_t k = 0; k < to[j].nbytes[i]; ++k) {
                src(i)[from[i].offsets[j] + k] = brought(i, j, k);
            }
        }
        with.push_back(
            {own_->memory(i).base(), own_->memory(i).base() + src_at, lists(to[i], from[i])});
    }
    upload();
    run({.what = operation::alltoallv}, with);
    for (std::size_t i = 0; i < count_; ++i) {
        expect_blocks(own_->memory(i).image(), to[i], i);
    }
}

INSTANTIATE_TEST_SUITE_P(endpoints, sizes_test, ::testing::Values(1, 2, 4));
INSTANTIATE_TEST_SUITE_P(endpoints, sized_test, ::testing::Values(1, 2, 4));

TEST_F(nccl_test, groups_on_the_same_devices_are_used_by_a_thread_each) {
    make_group(2);
    auto id = library_->make_unique_id();
    ASSERT_TRUE(id.ok());
    test::own_endpoints other(*backend_, library_, id.value(), 0, 2, 2);
    auto const work = [](test::own_endpoints &own) {
        std::mt19937_64 random(11);
        for (int i = 0; i < 30 && !HasFailure(); ++i) {
            own.run_and_check(test::draw_possible(random, 2, 3000));
        }
    };
    std::thread beside([&] { work(other); });
    work(*own_);
    beside.join();
}

TEST_F(nccl_test, devices_that_do_not_reach_each_other) {
    ::setenv("FAKE_CUDA_PEERS", "none", 1);
    make_group(2);
    std::mt19937_64 random(7);
    for (int i = 0; i < 20 && !HasFailure(); ++i) {
        own_->run_and_check(test::draw_possible(random, 2, 3000));
    }
}

} // namespace
} // namespace diomp::device_coll::vendor
