// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which calls go to a vendor's library, and as what.
#include "device_coll/vendor/plan.h"

#include <gmock/gmock.h>

#include <array>

namespace diomp::device_coll::vendor {
namespace {

using coll::block_list;
using coll::block_lists;
using coll::endpoint_buffers;
using coll::request;
using sync::operation;
using ::testing::HasSubstr;

class plan_test : public ::testing::Test {
protected:
    plan of(const request &asked, const endpoint_buffers &with, position in) {
        scratch_bytes_ = 0;
        auto made = make_plan(asked, with, in, [&](std::size_t nbytes) -> result<std::byte *> {
            scratch_bytes_ += nbytes;
            return scratch_.data();
        });
        EXPECT_TRUE(made.ok());
        for (step const &each : made.value().steps) {
            EXPECT_GT(each.count, 0U);
            EXPECT_NE(each.peer, each.kind >= step_kind::send ? in.self : -2);
        }
        return made.take();
    }

    std::array<std::byte, 1024> dst_{};
    std::array<std::byte, 1024> src_{};
    std::array<std::byte, 1024> scratch_{};
    std::size_t scratch_bytes_ = 0;
};

TEST_F(plan_test, what_the_library_can_do) {
    for (operation const what :
         {operation::reduce, operation::allreduce, operation::reduce_scatter}) {
        for (ompx_type_t type = 0; type <= OMPX_BOOL; ++type) {
            for (ompx_op_t op = 0; op <= OMPX_AVG; ++op) {
                bool const has_type = (type >= OMPX_INT8 && type <= OMPX_DOUBLE) &&
                                      type != OMPX_INT16 && type != OMPX_UINT16;
                bool const has_op = (op >= OMPX_SUM && op <= OMPX_MAX) || op == OMPX_AVG;
                bool const ignores_nans =
                    type >= OMPX_FLOAT16 && (op == OMPX_MIN || op == OMPX_MAX);
                EXPECT_EQ(supports({.what = what, .amount = 1, .type = type, .op = op}),
                          has_type && has_op && !ignores_nans)
                    << name_of(what) << " of type " << type << ", operator " << op;
            }
        }
        EXPECT_FALSE(supports({.what = what, .type = OMPX_TYPE_OF_SIZE(4), .op = OMPX_SUM}));
        EXPECT_FALSE(supports({.what = what, .type = OMPX_INT32, .op = 0x1000})) << "a user's";
    }
    for (operation const what : {operation::scan, operation::exscan}) {
        EXPECT_FALSE(supports({.what = what, .type = OMPX_INT32, .op = OMPX_SUM}));
    }
    for (operation const what :
         {operation::gather, operation::scatter, operation::allgather, operation::alltoall,
          operation::gatherv, operation::scatterv, operation::allgatherv, operation::alltoallv}) {
        EXPECT_TRUE(supports({.what = what}));
        EXPECT_TRUE(supports({.what = what, .type = OMPX_LONG_DOUBLE})) << "bytes are bytes";
    }
}

TEST_F(plan_test, moves_count_bytes_and_reductions_elements) {
    auto const moved = of({.what = operation::bcast, .amount = 3, .type = OMPX_DOUBLE, .root = 0},
                          {dst_.data(), nullptr, nullptr}, {0, 2});
    ASSERT_EQ(moved.steps.size(), 1U);
    EXPECT_EQ(moved.steps[0].count, 24U);
    EXPECT_EQ(moved.steps[0].type, element::int8);
    auto const combined =
        of({.what = operation::allreduce, .amount = 3, .type = OMPX_BFLOAT16, .op = OMPX_PROD},
           {dst_.data(), src_.data(), nullptr}, {0, 2});
    EXPECT_EQ(combined.steps[0].count, 3U);
    EXPECT_EQ(combined.steps[0].type, element::bfloat16);
    EXPECT_EQ(combined.steps[0].op, reduction::prod);
}

TEST_F(plan_test, own_block_stays_on_the_device) {
    request const asked{.what = operation::gather, .amount = 10, .root = 1};
    auto const at_root = of(asked, {dst_.data(), src_.data(), nullptr}, {1, 3});
    ASSERT_EQ(at_root.before.size(), 1U);
    EXPECT_EQ(at_root.before[0].dst, dst_.data() + 10);
    ASSERT_EQ(at_root.steps.size(), 2U);
    EXPECT_EQ(at_root.steps[1].to, dst_.data() + 20);
    EXPECT_EQ(at_root.steps[1].peer, 2);
    auto const in_place = of(asked, {dst_.data(), dst_.data() + 10, nullptr}, {1, 3});
    EXPECT_TRUE(in_place.before.empty());
    auto const elsewhere = of(asked, {nullptr, src_.data(), nullptr}, {2, 3});
    ASSERT_EQ(elsewhere.steps.size(), 1U);
    EXPECT_EQ(elsewhere.steps[0].kind, step_kind::send);
}

TEST_F(plan_test, calls_in_place_that_the_library_does_otherwise_go_through_scratch_memory) {
    request const scatter{
        .what = operation::reduce_scatter, .amount = 4, .type = OMPX_INT32, .op = OMPX_SUM};
    auto const first = of(scatter, {src_.data(), src_.data(), nullptr}, {0, 2});
    EXPECT_EQ(scratch_bytes_, 0U) << "there the two ways are one";
    EXPECT_EQ(first.steps[0].to, src_.data());
    auto const second = of(scatter, {src_.data(), src_.data(), nullptr}, {1, 2});
    EXPECT_EQ(scratch_bytes_, 16U);
    EXPECT_EQ(second.steps[0].to, scratch_.data());
    ASSERT_EQ(second.after.size(), 1U);
    EXPECT_EQ(second.after[0].dst, src_.data());
    of(scatter, {dst_.data(), src_.data(), nullptr}, {1, 2});
    EXPECT_EQ(scratch_bytes_, 0U);

    auto const exchange =
        of({.what = operation::alltoall, .amount = 8}, {src_.data(), src_.data(), nullptr}, {1, 3});
    EXPECT_EQ(scratch_bytes_, 24U);
    ASSERT_EQ(exchange.before.size(), 1U);
    EXPECT_EQ(exchange.before[0].nbytes, 24U);
    for (step const &each : exchange.steps) {
        if (each.kind == step_kind::send) {
            EXPECT_EQ(each.from, scratch_.data() + each.peer * 8);
        } else {
            EXPECT_EQ(each.to, src_.data() + each.peer * 8);
        }
    }
    EXPECT_EQ(exchange.steps.size(), 4U);
}

TEST_F(plan_test, empty_blocks_are_left_out) {
    block_list const one{{0, 5, 0}, {0, 0, 5}};
    request const asked{.what = operation::allgatherv,
                        .blocks = std::make_shared<block_lists>(block_lists{one, {}})};
    EXPECT_TRUE(of(asked, {dst_.data(), src_.data(), nullptr}, {1, 3}).steps.size() == 2);
    EXPECT_TRUE(of(asked, {dst_.data(), nullptr, nullptr}, {0, 3}).steps.size() == 1);
    block_list const none{{0, 0, 0}, {0, 0, 0}};
    auto const nothing =
        of({.what = operation::alltoallv},
           {nullptr, nullptr, std::make_shared<block_lists>(block_lists{none, none})}, {0, 3});
    EXPECT_TRUE(nothing.steps.empty());
    EXPECT_TRUE(nothing.before.empty());
}

TEST_F(plan_test, scratch_memory_that_there_is_not_is_the_calls_error) {
    auto const made =
        make_plan({.what = operation::alltoall, .amount = 8}, {src_.data(), src_.data(), nullptr},
                  {1, 3}, [](std::size_t) -> result<std::byte *> {
                      return error(OMPX_ERR_NOMEM, "the device is full");
                  });
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.failure().message(), HasSubstr("full"));
}

} // namespace
} // namespace diomp::device_coll::vendor
