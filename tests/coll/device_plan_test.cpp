// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What devices do in collectives from device to device, on host memory: in every order of the
// members the results are the same, so nobody overwrites what another still reads.
#include "coll/device_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;
using ints = std::vector<std::int32_t>;

std::byte *bytes_of(ints &of, std::size_t at = 0) {
    return reinterpret_cast<std::byte *>(of.data() + at);
}

constexpr std::size_t block = 150; ///< more than one grain of shares
constexpr int root = 1;

request made(operation what) {
    request asked;
    asked.what = what;
    asked.root = has_root(what) ? root : -1;
    asked.type = is_reduction(what) ? OMPX_INT32 : 0;
    asked.op = is_reduction(what) ? OMPX_SUM : 0;
    asked.amount = is_reduction(what) ? block : block * sizeof(std::int32_t);
    return asked;
}

/// Members that have both buffers in one.
enum class in_place { none, all, odd };

/// Each member has an array of 2 n blocks: src in the second half, or in place in the first.
class plan_run {
public:
    plan_run(operation what, std::size_t n, in_place who) : asked_(made(what)), n_(n), who_(who) {
        for (std::size_t member = 0; member < n; ++member) {
            ints &memory = memory_.emplace_back(2 * n * block);
            std::iota(memory.begin(), memory.end(),
                      static_cast<std::int32_t>(10000 * (member + 1)));
            before_.push_back(memory);
        }
        for (std::size_t member = 0; member < n; ++member) {
            buffers_.push_back({bytes_of(memory_[member], dst_at(member)),
                                bytes_of(memory_[member], src_at(member))});
        }
    }

    /// Where members have their buffers, in elements.
    [[nodiscard]] std::size_t src_at(std::size_t member) const {
        bool const has_blocks =
            asked_.what == operation::allgather ||
            (asked_.what == operation::gather && member == static_cast<std::size_t>(asked_.root));
        return !is_in_place(member) ? n_ * block : has_blocks ? member * block : 0;
    }
    [[nodiscard]] std::size_t dst_at(std::size_t member) const {
        bool const is_part = asked_.what == operation::scatter && is_in_place(member) &&
                             member == static_cast<std::size_t>(asked_.root);
        return is_part ? member * block : 0;
    }

    [[nodiscard]] bool is_fit(std::size_t member) const {
        return fits_device_plan(asked_, buffers_[member], use_of(asked_, {}, n_, member), member);
    }
    /// Each phase in this order of the members.
    void run(const std::vector<std::size_t> &order) {
        constexpr std::size_t aside = 2 * sizeof(std::int32_t) * block / 3; ///< two pieces a block
        std::vector<std::vector<std::byte>> pieces(n_, std::vector<std::byte>(aside));
        std::vector<std::vector<device_plan>> plans;
        for (std::size_t member = 0; member < n_; ++member) {
            plans.push_back(make_device_plans(asked_, buffers_, member, pieces[member]));
            ASSERT_EQ(plans.back().size(), plans.front().size());
        }
        for (std::size_t phase = 0; phase < plans.front().size(); ++phase) {
            for (std::size_t const member : order) {
                carry_out(plans[member][phase]);
            }
        }
    }

    [[nodiscard]] std::int32_t src_of(std::size_t member, std::size_t i) const {
        return before_[member][src_at(member) + i];
    }
    [[nodiscard]] std::int32_t sum_of(std::size_t i) const { return sum_of(i, n_); }
    /// Of the first members.
    [[nodiscard]] std::int32_t sum_of(std::size_t i, std::size_t num) const {
        std::int32_t sum = 0;
        for (std::size_t member = 0; member < num; ++member) {
            sum += src_of(member, i);
        }
        return sum;
    }
    /// Element i of a member's result.
    [[nodiscard]] std::int32_t wanted(std::size_t member, std::size_t i) const {
        std::size_t const from = i / block;
        switch (asked_.what) {
        case operation::bcast:
            return before_[root][i];
        case operation::reduce:
        case operation::allreduce:
            return sum_of(i);
        case operation::reduce_scatter:
            return sum_of(member * block + i);
        case operation::scan:
            return sum_of(i, member + 1);
        case operation::exscan:
            return member == 0 ? before_[0][dst_at(0) + i] : sum_of(i, member);
        case operation::scatter:
            return src_of(root, member * block + i);
        case operation::gather:
        case operation::allgather:
            return src_of(from, i % block);
        default:
            return src_of(from, member * block + i % block);
        }
    }
    void check() {
        for (std::size_t member = 0; member < n_; ++member) {
            std::size_t const count =
                use_of(asked_, {}, n_, member).dst_bytes / sizeof(std::int32_t);
            ints all = before_[member]; // but for the result
            for (std::size_t i = 0; i < count; ++i) {
                all[dst_at(member) + i] = wanted(member, i);
            }
            ASSERT_EQ(memory_[member], all) << "member " << member;
        }
    }

private:
    [[nodiscard]] bool is_in_place(std::size_t member) const {
        return who_ == in_place::all || (who_ == in_place::odd && member % 2 == 1);
    }
    static void carry_out(const device_plan &plan) {
        for (const device_reduction &each : plan.reductions) {
            for (std::size_t i = 0; i < each.count; ++i) {
                std::int32_t sum = 0;
                for (const void *const operand : each.operands) {
                    sum += static_cast<const std::int32_t *>(operand)[i];
                }
                reinterpret_cast<std::int32_t *>(each.to)[i] = sum;
            }
        }
        for (const device_copy &each : plan.copies) {
            std::memcpy(each.dst, each.src, each.nbytes);
        }
    }

    request const asked_;
    std::size_t const n_;
    in_place const who_;
    std::vector<ints> memory_;
    std::vector<ints> before_;
    std::vector<device_buffers> buffers_;
};

void check_in_every_order(operation what, std::size_t n, in_place who) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
        plan_run call(what, n, who);
        for (std::size_t member = 0; member < n; ++member) {
            ASSERT_TRUE(call.is_fit(member));
        }
        call.run(order);
        ASSERT_NO_FATAL_FAILURE(call.check()) << sync::name_of(what) << " of " << n;
    } while (std::ranges::next_permutation(order).found);
}

constexpr operation all_calls[] = {
    operation::bcast,   operation::reduce,    operation::allreduce,      operation::gather,
    operation::scatter, operation::allgather, operation::reduce_scatter, operation::alltoall,
    operation::scan,    operation::exscan};

TEST(device_plan_test, every_call_in_every_order_of_the_members) {
    for (operation const what : all_calls) {
        for (std::size_t const n : {2U, 3U, 4U}) {
            check_in_every_order(what, n, in_place::none);
        }
    }
}

TEST(device_plan_test, in_place_in_every_order_of_the_members) {
    for (operation const what : all_calls) {
        if (what == operation::bcast) {
            continue;
        }
        for (std::size_t const n : {2U, 3U, 4U}) {
            check_in_every_order(what, n, in_place::all);
            check_in_every_order(what, n, in_place::odd);
        }
    }
}

TEST(device_plan_test, buffers_that_somebody_would_overwrite_are_not_fit) {
    ints memory(1000);
    for (operation const what :
         {operation::allreduce, operation::reduce_scatter, operation::alltoall}) {
        request const asked = made(what);
        buffer_use const use = use_of(asked, {}, 3, 0);
        device_buffers const shifted{bytes_of(memory), bytes_of(memory, 1)};
        EXPECT_FALSE(fits_device_plan(asked, shifted, use, 0));
        device_buffers const beside{bytes_of(memory), bytes_of(memory, 3 * block)};
        EXPECT_TRUE(fits_device_plan(asked, beside, use, 0));
    }
}

TEST(device_plan_test, not_all_calls_have_plans) {
    for (operation const what : all_calls) {
        EXPECT_TRUE(has_device_plan(made(what)));
        request empty = made(what);
        empty.amount = 0;
        EXPECT_FALSE(has_device_plan(empty));
    }
    EXPECT_FALSE(has_device_plan(made(operation::barrier)));
}

TEST(device_plan_test, operators_of_the_program_and_long_double_are_for_the_processor) {
    request asked = made(operation::allreduce);
    asked.op = user_operators::first_handle;
    EXPECT_FALSE(has_device_plan(asked));
    asked = made(operation::reduce_scatter);
    asked.type = OMPX_LONG_DOUBLE;
    EXPECT_FALSE(has_device_plan(asked));
}

// All but the last shares begin at multiples of 256 bytes, and nobody is given an empty reduction.
TEST(device_plan_test, shares_of_few_elements) {
    ints memory(64);
    std::vector<device_buffers> const all(4, {bytes_of(memory), bytes_of(memory)});
    request asked = made(operation::allreduce);
    asked.amount = 64;
    int reducing = 0;
    for (std::size_t member = 0; member < all.size(); ++member) {
        auto const plans = make_device_plans(asked, all, member);
        for (const device_reduction &each : plans.front().reductions) {
            ++reducing;
            EXPECT_EQ(each.count, 64U);
        }
    }
    EXPECT_EQ(reducing, 1);
}

} // namespace
} // namespace diomp::coll
