// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Containers, owners and symmetric arrays in global memory. Runs with DIOMP_ERRORS=return.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

// Destroyed after main: must neither fail nor free what the runtime has already given back.
diomp::symmetric_array<int> outlives_main; // NOLINT(cert-err58-cpp)

std::size_t allocations() {
    ompx_segment_info_t info;
    diomp::detail::check(ompx_segment_info(&info));
    return info.num_allocations;
}
ompx_mem_kind_t kind_of(const void *address) {
    ompx_addr_info_t info;
    diomp::detail::check(ompx_addr_info(address, &info));
    return info.kind;
}
int right() { return (diomp::this_rank() + 1) % diomp::num_ranks(); }

template <typename Action>
int status_of(Action action) {
    try {
        action();
    } catch (const diomp::error &failure) {
        EXPECT_STRNE(failure.what(), "");
        return failure.status();
    }
    return OMPX_SUCCESS;
}

class cpp_memory : public testing::Test {
protected:
    void SetUp() override { before_ = allocations(); }
    /// Nothing that a test has made is left.
    void TearDown() override { EXPECT_EQ(allocations(), before_); }

private:
    std::size_t before_ = 0;
};

template <typename R>
constexpr bool can_put_nb = requires(diomp::symmetric_array<int> &array, R &&values) {
    array.put_nb(0, 0, std::forward<R>(values));
    array.at(0, 0).put_nb(std::forward<R>(values));
};
template <typename R>
constexpr bool can_get_nb = requires(diomp::symmetric_array<int> &array, R &&into) {
    array.get_nb(0, 0, std::forward<R>(into));
    array.at(0, 0).get_nb(std::forward<R>(into));
};

TEST_F(cpp_memory, vectors_grow_in_symmetric_memory) {
    std::vector<int, diomp::symmetric_allocator<int>> values;
    for (int i = 0; i < 1000; ++i) {
        values.push_back(diomp::this_rank() * 1000 + i);
    }
    EXPECT_EQ(kind_of(values.data()), OMPX_MEM_SYMMETRIC);
    diomp::barrier();
    std::vector<int> fetched(1000);
    diomp::at(right(), values.data()).get(fetched);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(fetched[static_cast<std::size_t>(i)], right() * 1000 + i);
    }
    const auto moved = std::move(values);
    EXPECT_EQ(moved.size(), 1000u);
    diomp::barrier();
}

TEST_F(cpp_memory, vectors_of_different_sizes_in_asymmetric_memory) {
    const auto size = static_cast<std::size_t>(10 * (diomp::this_rank() + 1));
    std::vector<int, diomp::asymmetric_allocator<int>> values(size, diomp::this_rank());
    EXPECT_EQ(kind_of(values.data()), OMPX_MEM_ASYMMETRIC);
    diomp::barrier();
    std::vector<int> fetched(static_cast<std::size_t>(10 * (right() + 1)), -1);
    // The other rank's part may be longer than one's own, so the pointer is made portable first.
    diomp::at(right(), values.data()).portable().get(fetched);
    EXPECT_EQ(std::count(fetched.begin(), fetched.end(), right()),
              static_cast<std::ptrdiff_t>(fetched.size()));
    diomp::barrier();
}

TEST_F(cpp_memory, local_vectors_are_one_ranks_own_affair) {
    using string = std::string;
    std::vector<string, diomp::local_allocator<string>> values;
    for (int i = 0; i < 10 * diomp::this_rank(); ++i) {
        values.push_back(std::to_string(i) + " is too long to be kept inside of the string itself");
    }
    if (!values.empty()) {
        EXPECT_EQ(kind_of(values.data()), OMPX_MEM_LOCAL);
        EXPECT_EQ(values[3].substr(0, 4), "3 is");
    }
}

TEST_F(cpp_memory, polymorphic_containers_take_a_resource) {
    EXPECT_TRUE(diomp::symmetric_resource()->is_equal(*diomp::symmetric_resource()));
    EXPECT_FALSE(diomp::symmetric_resource()->is_equal(*diomp::local_resource()));
    EXPECT_FALSE(diomp::local_resource()->is_equal(*std::pmr::new_delete_resource()));
    const std::pmr::vector<double> symmetric(100, 1.0, diomp::symmetric_resource());
    EXPECT_EQ(kind_of(symmetric.data()), OMPX_MEM_SYMMETRIC);
    const std::pmr::vector<double> local(100, 1.0, diomp::local_resource());
    EXPECT_EQ(kind_of(local.data()), OMPX_MEM_LOCAL);
}

struct counted {
    counted(int &alive, int given) : alive_now(alive), value(given) { ++alive_now; }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
    ~counted() { --alive_now; }
    int &alive_now;
    int value;
};

TEST_F(cpp_memory, owners_destroy_and_free) {
    int alive = 0;
    {
        const auto one = diomp::make_symmetric<counted>(alive, 3);
        const auto two = diomp::make_local<counted>(alive, 4);
        EXPECT_EQ(alive, 2);
        EXPECT_EQ(one->value + two->value, 7);
        EXPECT_EQ(kind_of(one.get()), OMPX_MEM_SYMMETRIC);
        EXPECT_EQ(kind_of(two.get()), OMPX_MEM_LOCAL);
    }
    EXPECT_EQ(alive, 0);
    const auto array = diomp::make_symmetric<int[]>(50);
    EXPECT_EQ(std::accumulate(array.get(), array.get() + 50, 0), 0);
    const auto parts =
        diomp::make_asymmetric<long[]>(static_cast<std::size_t>(diomp::this_rank()) * 7);
    EXPECT_EQ(kind_of(parts.get()), OMPX_MEM_ASYMMETRIC);
}

struct refuses {
    refuses() { throw 5; }
};

TEST_F(cpp_memory, a_constructor_that_throws_leaves_nothing) {
    EXPECT_THROW(static_cast<void>(diomp::make_local<refuses>()), int);
    EXPECT_THROW(static_cast<void>(diomp::make_symmetric<refuses>()), int);
}

struct alignas(4096) page {
    std::byte bytes[4096];
};

TEST_F(cpp_memory, over_aligned_types_are_aligned) {
    const auto one = diomp::make_symmetric<page>();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.get()) % 4096, 0u);
    const diomp::symmetric_array<page> array(2);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % 4096, 0u);
}

TEST_F(cpp_memory, arrays_are_ready_for_puts_when_they_exist) {
    for (int round = 0; round < 20; ++round) {
        diomp::symmetric_array<int> array(10'000, -1);
        array.put(right(), 9'999, diomp::this_rank());
        array.put(right(), 0, std::vector<int>(100, round));
        diomp::barrier();
        EXPECT_EQ((array[9'999] + 1) % diomp::num_ranks(), diomp::this_rank());
        EXPECT_EQ(array[99], round);
        EXPECT_EQ(array[100], -1);
        EXPECT_EQ(array.get(right(), 9'999), diomp::this_rank());
        diomp::barrier();
    }
}

TEST_F(cpp_memory, arrays_are_ranges_and_move) {
    diomp::symmetric_array<int> array(100);
    std::iota(array.begin(), array.end(), diomp::this_rank());
    EXPECT_EQ(array.local().back(), diomp::this_rank() + 99);
    const int *const before = array.data();
    diomp::symmetric_array<int> other = std::move(array);
    EXPECT_TRUE(array.empty()); // NOLINT(bugprone-use-after-move): a moved-from array is empty
    EXPECT_EQ(other.data(), before);
    array = std::move(other);
    EXPECT_EQ(array.size(), 100u);
    diomp::barrier();
    for (int rank = 0; rank < diomp::num_ranks(); ++rank) {
        const auto direct = std::as_const(array).direct(rank);
        EXPECT_TRUE(direct.empty() || (direct.size() == 100 && direct[5] == rank + 5));
    }
    // A temporary container would end before the transfer; a temporary view may.
    static_assert(!can_put_nb<std::vector<int>> && !can_get_nb<std::vector<int>>);
    static_assert(can_put_nb<const std::vector<int> &> && can_get_nb<std::vector<int> &>);
    static_assert(can_put_nb<std::span<const int>> && can_get_nb<std::span<int>>);
    std::vector<int> fetched(10);
    auto get = array.get_nb(right(), 90, fetched);
    get.wait();
    EXPECT_EQ(fetched.back(), right() + 99);
    diomp::barrier();
    array.put_nb(right(), 0, fetched).wait();
    diomp::barrier();
    EXPECT_EQ(array[0], diomp::this_rank() + 90);
    diomp::barrier();
}

TEST_F(cpp_memory, an_array_may_be_empty) {
    diomp::symmetric_array<int> array(0);
    EXPECT_TRUE(array.empty());
    array.put(right(), 0, std::vector<int>());
    EXPECT_EQ(status_of([&] { array.put(right(), 0, 1); }), OMPX_ERR_RANGE);
}

TEST_F(cpp_memory, indices_past_the_end_are_errors) {
    diomp::symmetric_array<int> array(100);
    std::vector<int> ten(10);
    const std::vector<std::pair<std::size_t, bool>> cases = {
        {0, true}, {90, true}, {91, false}, {100, false}, {101, false}, {SIZE_MAX - 5, false}};
    for (const auto &[index, fits] : cases) {
        const int expected = fits ? OMPX_SUCCESS : OMPX_ERR_RANGE;
        EXPECT_EQ(status_of([&, i = index] { array.put(right(), i, ten); }), expected) << index;
        EXPECT_EQ(status_of([&, i = index] { array.get(right(), i, ten); }), expected) << index;
    }
    EXPECT_EQ(status_of([&] { static_cast<void>(array.get(right(), 100)); }), OMPX_ERR_RANGE);
    EXPECT_EQ(status_of([&] { static_cast<void>(array.at(right(), 101)); }), OMPX_ERR_RANGE);
    diomp::barrier();
}

TEST_F(cpp_memory, errors_of_the_runtime_arrive_as_exceptions) {
    diomp::symmetric_array<int> array(1);
    EXPECT_EQ(status_of([&] { array.put(diomp::num_ranks(), 0, 1); }), OMPX_ERR_RANK);
    EXPECT_EQ(status_of([&] { static_cast<void>(array.get(-1, 0)); }), OMPX_ERR_RANK);
    EXPECT_EQ(status_of([] {
                  std::vector<std::byte, diomp::local_allocator<std::byte>> huge;
                  huge.reserve(std::size_t{1} << 62);
              }),
              OMPX_ERR_NOMEM);
    int somewhere = 0;
    const auto nowhere = diomp::at(diomp::this_rank(), &somewhere);
    EXPECT_EQ(status_of([&] { static_cast<void>(nowhere.portable()); }), OMPX_ERR_ADDRESS);
}

// Last: it stays allocated until the program ends.
TEST(cpp_memory_of_the_program, a_static_array_may_outlive_main) {
    outlives_main = diomp::symmetric_array<int>(10, 4);
    EXPECT_EQ(outlives_main.get(right(), 9), 4);
    diomp::barrier();
}

} // namespace
