// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// V forms on devices, by every way that ctest has the calls take; where that is from device to
// device nothing goes through host memory.
#include "offload/accelerator_collectives.h"

namespace diomp::test {
namespace {

constexpr std::size_t unit = sizeof(std::int32_t);

/// Lists of elements, as bytes.
struct list {
    std::vector<std::size_t> nbytes;
    std::vector<std::size_t> offsets;

    void add(std::size_t count, std::size_t at) {
        nbytes.push_back(count * unit);
        offsets.push_back(at * unit);
    }
    [[nodiscard]] std::size_t count(int of) const {
        return nbytes[static_cast<std::size_t>(of)] / unit;
    }
    [[nodiscard]] std::size_t at(int of) const {
        return offsets[static_cast<std::size_t>(of)] / unit;
    }
    /// Whose block element i is in, or -1.
    [[nodiscard]] int holder(std::size_t i) const {
        for (int of = 0; of < static_cast<int>(nbytes.size()); ++of) {
            if (i >= at(of) && i < at(of) + count(of)) {
                return of;
            }
        }
        return -1;
    }
};

class blocks_on_devices : public device_collectives {
protected:
    static constexpr std::size_t src_at = 2000;

    /// Of all members the same sizes, one of them nothing; the gaps are the caller's own.
    [[nodiscard]] list shared_list(std::size_t gap) const {
        list made;
        std::size_t at = gap;
        for (int member = 0; member < size_; ++member) {
            std::size_t const count = member == 1 ? 0 : 110 + static_cast<std::size_t>(member) * 37;
            made.add(count, at);
            at += count + gap;
        }
        return made;
    }
    [[nodiscard]] std::size_t own_gap() const {
        return static_cast<std::size_t>(ompx_rank_num()) + 1;
    }
    /// Elements from one member to another in an alltoallv; some pairs have none.
    static std::size_t count_between(int from, int to) {
        return static_cast<std::size_t>((from * 5 + to * 3) % 4) * 101;
    }
    /// A list for a member of what it sends, or gets.
    [[nodiscard]] list list_of(int member, bool sends) const {
        list made;
        std::size_t at = static_cast<std::size_t>(member);
        for (int other = 0; other < size_; ++other) {
            std::size_t const count =
                sends ? count_between(member, other) : count_between(other, member);
            made.add(count, at);
            at += count + 3;
        }
        return made;
    }
    /// All own endpoints make their calls: an alltoallv has lists for each.
    int alltoallv(const std::vector<list> &dst, const std::vector<list> &src) {
        std::int32_t *const b = buffer_.data();
        std::vector<ompx_event_t> events(devices_.size());
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            int const started = ompx_target_alltoallv_nb(
                b, dst[place].nbytes.data(), dst[place].offsets.data(), b + src_at,
                src[place].nbytes.data(), src[place].offsets.data(), devices_[place], group_,
                &events[place]);
            EXPECT_EQ(started, 0) << ompx_last_error();
        }
        int outcome = 0;
        for (ompx_event_t &event : events) {
            outcome = ompx_event_wait(&event);
        }
        return outcome;
    }
    [[nodiscard]] std::vector<list> own_lists(bool sends) const {
        std::vector<list> made;
        made.reserve(devices_.size());
        for (int place = 0; place < num_own(); ++place) {
            made.push_back(list_of(first_ + place, sends));
        }
        return made;
    }
};

TEST_F(blocks_on_devices, gather_to_one_and_to_all) {
    std::int32_t *const b = buffer_.data();
    list const blocks = shared_list(own_gap());
    auto const gathered = [&](int member, std::size_t i) {
        int const from = blocks.holder(i);
        return from < 0 ? brought(member, i) : brought(from, src_at + i - blocks.at(from));
    };
    through_host const counted;
    fill();
    ASSERT_EQ(ompx_target_allgatherv(b, blocks.nbytes.data(), blocks.offsets.data(), b + src_at,
                                     all, group_),
              0);
    expect(length, gathered);
    int const root = size_ - 1;
    fill();
    ASSERT_EQ(ompx_target_gatherv(b, blocks.nbytes.data(), blocks.offsets.data(), b + src_at, all,
                                  root, group_),
              0);
    expect(length, [&](int member, std::size_t i) {
        return member == root ? gathered(member, i) : brought(member, i);
    });
    counted.check();
}

TEST_F(blocks_on_devices, scatter) {
    std::int32_t *const b = buffer_.data();
    list const blocks = shared_list(own_gap());
    int const root = size_ - 1;
    list of_root; // its gap counts
    int const root_rank = ompx_num_ranks() - 1;
    of_root = shared_list(static_cast<std::size_t>(root_rank) + 1);
    through_host const counted;
    fill();
    ASSERT_EQ(ompx_target_scatterv(b, b + src_at, blocks.nbytes.data(), blocks.offsets.data(), all,
                                   root, group_),
              0);
    expect(length, [&](int member, std::size_t i) {
        return i < blocks.count(member) ? brought(root, src_at + of_root.at(member) + i)
                                        : brought(member, i);
    });
    counted.check();
}

TEST_F(blocks_on_devices, everybody_to_everybody) {
    through_host const counted;
    fill();
    ASSERT_EQ(alltoallv(own_lists(false), own_lists(true)), 0) << ompx_last_error();
    expect(src_at, [&](int member, std::size_t i) {
        list const wanted = list_of(member, false);
        int const from = wanted.holder(i);
        return from < 0
                   ? brought(member, i)
                   : brought(from, src_at + list_of(from, true).at(member) + i - wanted.at(from));
    });
    counted.check();
}

TEST_F(blocks_on_devices, own_block_in_place) {
    if (num_own() > 1) {
        GTEST_SKIP() << "one call for several endpoints has one pointer, so not each's own block";
    }
    std::int32_t *const b = buffer_.data();
    list const blocks = shared_list(own_gap());
    auto const gathered = [&](int member, std::size_t i) {
        int const from = blocks.holder(i);
        std::size_t const gap = static_cast<std::size_t>(from) + 1; // its own list
        return from < 0 ? brought(member, i)
                        : brought(from, shared_list(gap).at(from) + i - blocks.at(from));
    };
    std::int32_t *const own = b + blocks.at(first_);
    through_host const counted;
    fill();
    ASSERT_EQ(
        ompx_target_allgatherv(b, blocks.nbytes.data(), blocks.offsets.data(), own, all, group_),
        0);
    expect(length, gathered);
    fill();
    ASSERT_EQ(
        ompx_target_gatherv(b, blocks.nbytes.data(), blocks.offsets.data(), own, all, 0, group_),
        0);
    expect(length, [&](int member, std::size_t i) {
        return member == 0 ? gathered(member, i) : brought(member, i);
    });
    fill();
    ASSERT_EQ(ompx_target_scatterv(first_ == 0 ? own : b, b, blocks.nbytes.data(),
                                   blocks.offsets.data(), all, 0, group_),
              0);
    expect(length, [&](int member, std::size_t i) {
        return member != 0 && i < blocks.count(member) ? brought(0, shared_list(1).at(member) + i)
                                                       : brought(member, i);
    });
    counted.check();
}

TEST_F(blocks_on_devices, sizes_that_differ_are_an_error_on_all_and_nothing_is_written) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    std::int32_t *const b = buffer_.data();
    bool const is_first = ompx_rank_num() == 0;
    list blocks = shared_list(0);
    blocks.nbytes.back() += is_first ? unit : 0;
    fill();
    EXPECT_EQ(ompx_target_allgatherv(b, blocks.nbytes.data(), blocks.offsets.data(), b + src_at,
                                     all, group_),
              OMPX_ERR_MISMATCH);
    if (!kernels().empty()) { // NCCL would hang
        std::vector<list> sent = own_lists(true);
        sent.front().nbytes.back() += is_first ? unit : 0; // one pair of all
        EXPECT_EQ(alltoallv(own_lists(false), sent), OMPX_ERR_MISMATCH);
    }
    expect(length, [](int member, std::size_t i) { return brought(member, i); });
    EXPECT_EQ(alltoallv(own_lists(false), own_lists(true)), 0);
}

TEST_F(blocks_on_devices, nothing_to_move_needs_no_buffers) {
    std::vector<std::size_t> const none(static_cast<std::size_t>(size_));
    EXPECT_EQ(ompx_target_allgatherv(nullptr, none.data(), nullptr, nullptr, all, group_), 0);
    EXPECT_EQ(ompx_target_gatherv(nullptr, none.data(), nullptr, nullptr, all, 0, group_), 0);
    EXPECT_EQ(ompx_target_alltoallv(nullptr, none.data(), nullptr, nullptr, none.data(), nullptr,
                                    all, group_),
              0);
}

TEST_F(blocks_on_devices, memory_that_is_not_mapped_is_an_error_here) {
    values elsewhere(length);
    std::int32_t *const b = buffer_.data();
    list const blocks = shared_list(0);
    EXPECT_EQ(ompx_target_allgatherv(elsewhere.data(), blocks.nbytes.data(), blocks.offsets.data(),
                                     b, all, group_),
              OMPX_ERR_ADDRESS);
    list far = blocks;
    far.offsets.front() = length * unit;
    EXPECT_EQ(ompx_target_allgatherv(b, far.nbytes.data(), far.offsets.data(), b, all, group_),
              OMPX_ERR_RANGE);
}

} // namespace
} // namespace diomp::test
