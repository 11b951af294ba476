// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What devices do in v forms from device to device, on host memory, in every order of the members.
#include "coll/device_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;
using bytes = std::vector<unsigned char>;

constexpr std::size_t root_member = 1;

/// Bytes from one member to another; some pairs have none.
std::size_t size_between(std::size_t from, std::size_t to) { return (from * 5 + to * 3) % 7 * 11; }

bool is_alltoallv(operation what) { return what == operation::alltoallv; }
std::size_t size_of_block(operation what, std::size_t from, std::size_t to) {
    if (is_alltoallv(what)) {
        return size_between(from, to);
    }
    return what == operation::scatterv ? size_between(root_member, to)
                                       : size_between(from, root_member);
}

/// A list of the blocks `size(i)`, with gaps that differ between members.
template <typename Size>
block_list list_of(std::size_t n, std::size_t member, Size &&size) {
    block_list made;
    std::size_t at = member;
    for (std::size_t i = 0; i < n; ++i) {
        made.nbytes.push_back(size(i));
        made.offsets.push_back(at);
        at += size(i) + member + 1;
    }
    return made;
}

/// One call: each member has a block of memory for dst and one for src, or in place both in one.
class blocks_run {
public:
    blocks_run(operation what, std::size_t n, bool in_place) : n_(n), in_place_(in_place) {
        asked_.what = what;
        asked_.root = has_root(what) ? static_cast<int>(root_member) : -1;
        for (std::size_t member = 0; member < n; ++member) {
            lists_.push_back(std::make_shared<block_lists>(lists(member)));
            bytes &memory = memory_.emplace_back(2 * room);
            std::iota(memory.begin(), memory.end(), static_cast<unsigned char>(71 * member));
        }
        before_ = memory_;
        for (std::size_t member = 0; member < n; ++member) {
            buffers_.push_back({at(member, dst_at(member)), at(member, src_at(member))});
        }
    }

    [[nodiscard]] request call_of(std::size_t member) const {
        request made = asked_;
        made.blocks = lists_[member];
        return made;
    }
    [[nodiscard]] bool is_fit(std::size_t member) const {
        request const call = call_of(member);
        return fits_device_plan(call, buffers_[member], use_of(call, {}, n_, member), member);
    }
    void run(const std::vector<std::size_t> &order) {
        for (std::size_t const member : order) {
            std::vector<device_buffers> all = buffers_;
            for (std::size_t other = 0; other < n_; ++other) {
                if (asked_.what != operation::allgatherv) {
                    const block_lists &lists = *lists_[other];
                    all[other].before =
                        (lists.src.nbytes.empty() ? lists.dst : lists.src).offsets[member];
                }
            }
            auto const plans = make_device_plans(call_of(member), all, member);
            ASSERT_EQ(plans.size(), 1U);
            EXPECT_TRUE(plans.front().reductions.empty());
            for (const device_copy &each : plans.front().copies) {
                std::memcpy(each.dst, each.src, each.nbytes);
            }
        }
    }
    /// Blocks are where they belong, and all else is as it was.
    void check() const {
        for (std::size_t to = 0; to < n_; ++to) {
            bytes wanted = before_[to];
            for (std::size_t from = 0; from < n_; ++from) {
                if (gets(from, to)) {
                    std::size_t const nbytes = size_of_block(asked_.what, from, to);
                    std::copy_n(before_[from].data() + sent_at(from, to), nbytes,
                                wanted.data() + kept_at(from, to));
                }
            }
            ASSERT_EQ(memory_[to], wanted) << "member " << to;
        }
    }

private:
    static constexpr std::size_t room = 1000;

    [[nodiscard]] block_lists lists(std::size_t member) const {
        operation const what = asked_.what;
        auto const to_here = [&](std::size_t i) { return size_of_block(what, i, member); };
        auto const from_here = [&](std::size_t i) { return size_of_block(what, member, i); };
        if (what == operation::scatterv) {
            return {{}, list_of(n_, member, from_here)};
        }
        return {list_of(n_, member, to_here),
                is_alltoallv(what) ? list_of(n_, member, from_here) : block_list{}};
    }
    [[nodiscard]] bool has_blocks(std::size_t member) const {
        return !has_root(asked_.what) || member == root_member;
    }
    [[nodiscard]] bool gets(std::size_t from, std::size_t to) const {
        return asked_.what == operation::scatterv ? from == root_member : has_blocks(to);
    }
    [[nodiscard]] std::size_t src_at(std::size_t member) const {
        bool const is_own = in_place_ && asked_.what != operation::scatterv && has_blocks(member);
        return is_own ? lists_[member]->dst.offsets[member] : room;
    }
    [[nodiscard]] std::size_t dst_at(std::size_t member) const {
        bool const is_own = in_place_ && asked_.what == operation::scatterv && has_blocks(member);
        return is_own ? room + lists_[member]->src.offsets[member] : 0;
    }
    [[nodiscard]] std::size_t sent_at(std::size_t from, std::size_t to) const {
        const block_list &list = lists_[from]->src;
        return src_at(from) + (list.nbytes.empty() ? 0 : list.offsets[to]);
    }
    [[nodiscard]] std::size_t kept_at(std::size_t from, std::size_t to) const {
        const block_list &list = lists_[to]->dst;
        return dst_at(to) + (list.nbytes.empty() ? 0 : list.offsets[from]);
    }
    std::byte *at(std::size_t member, std::size_t offset) {
        return reinterpret_cast<std::byte *>(memory_[member].data() + offset);
    }

    std::size_t const n_;
    bool const in_place_;
    request asked_;
    std::vector<std::shared_ptr<block_lists>> lists_;
    std::vector<bytes> memory_;
    std::vector<bytes> before_;
    std::vector<device_buffers> buffers_;
};

void check_blocks_in_every_order(operation what, std::size_t n, bool in_place) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
        blocks_run call(what, n, in_place);
        for (std::size_t member = 0; member < n; ++member) {
            ASSERT_TRUE(call.is_fit(member));
            ASSERT_TRUE(has_device_plan(call.call_of(member)));
        }
        call.run(order);
        ASSERT_NO_FATAL_FAILURE(call.check()) << sync::name_of(what) << " of " << n;
    } while (std::ranges::next_permutation(order).found);
}

TEST(device_plan_blocks_test, every_v_form_in_every_order_of_the_members) {
    for (operation const what :
         {operation::gatherv, operation::scatterv, operation::allgatherv, operation::alltoallv}) {
        for (std::size_t const n : {2U, 3U, 4U}) {
            check_blocks_in_every_order(what, n, false);
        }
    }
}

TEST(device_plan_blocks_test, in_place_in_every_order_of_the_members) {
    for (operation const what : {operation::gatherv, operation::scatterv, operation::allgatherv}) {
        for (std::size_t const n : {2U, 3U, 4U}) {
            check_blocks_in_every_order(what, n, true);
        }
    }
}

TEST(device_plan_blocks_test, blocks_that_overlap_in_another_way_are_not_fit) {
    bytes memory(100);
    auto const at = [&](std::size_t offset) {
        return reinterpret_cast<std::byte *>(memory.data() + offset);
    };
    request asked;
    auto const fits = [&](operation what, std::size_t dst, std::size_t src) {
        asked.what = what;
        block_list const list{{10, 10}, {5, 20}};
        asked.blocks = std::make_shared<block_lists>(
            what == operation::alltoallv ? block_lists{list, list} : block_lists{list, {}});
        return fits_device_plan(asked, {at(dst), at(src)}, use_of(asked, {}, 2, 1), 1);
    };
    EXPECT_TRUE(fits(operation::allgatherv, 0, 20));
    EXPECT_FALSE(fits(operation::allgatherv, 0, 19));
    EXPECT_FALSE(fits(operation::allgatherv, 0, 5));
    EXPECT_TRUE(fits(operation::allgatherv, 0, 40));
    EXPECT_FALSE(fits(operation::alltoallv, 0, 0));
    EXPECT_TRUE(fits(operation::alltoallv, 0, 40));
}

TEST(device_plan_blocks_test, a_v_form_without_bytes_is_for_nobody) {
    request asked;
    asked.what = operation::allgatherv;
    asked.blocks = std::make_shared<block_lists>(block_lists{{{0, 0}, {0, 0}}, {}});
    EXPECT_FALSE(has_device_plan(asked));
    EXPECT_EQ(largest_block(asked), 0U);
    asked.blocks = std::make_shared<block_lists>(block_lists{{{0, 3}, {0, 0}}, {}});
    EXPECT_TRUE(has_device_plan(asked));
    EXPECT_EQ(largest_block(asked), 3U);
}

} // namespace
} // namespace diomp::coll
