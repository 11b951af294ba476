// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions on the vendors' stand-ins, which run the kernels' source, and on a CUDA device where
// there is one: every type and operator against the collectives' loops for the processor, bit by
// bit.
#include "coll/internal/operators.h"
#include "coll/special_values.h"
#include "device/device.h"
#include "device/kernels/embedded.h"
#include "rma/internal/apply_atomic.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <optional>
#include <random>
#include <vector>

namespace diomp::device {
namespace {

using ::testing::HasSubstr;
using bytes = std::vector<std::byte>;

constexpr std::size_t reserved_bytes = std::size_t{2} << 20;
constexpr ompx_op_t all_operators[] = {OMPX_SUM,  OMPX_PROD, OMPX_MIN,    OMPX_MAX,
                                       OMPX_BAND, OMPX_BOR,  OMPX_BXOR,   OMPX_LAND,
                                       OMPX_LOR,  OMPX_AVG,  OMPX_MINLOC, OMPX_MAXLOC};

/// A type of pairs: those of the value, and where the index begins and ends.
struct pair_layout {
    ompx_type_t value;
    std::size_t index;
    std::size_t end;
};
std::optional<pair_layout> pair_layout_of(ompx_type_t type) {
    switch (type) {
    case OMPX_FLOAT_INT:
    case OMPX_2FLOAT:
        return pair_layout{OMPX_FLOAT, 4, 8};
    case OMPX_DOUBLE_INT:
        return pair_layout{OMPX_DOUBLE, 8, 12};
    case OMPX_LONG_INT:
        return pair_layout{OMPX_INT64, 8, 12};
    case OMPX_2INT:
        return pair_layout{OMPX_INT32, 4, 8};
    case OMPX_SHORT_INT:
        return pair_layout{OMPX_INT16, 4, 8};
    case OMPX_2DOUBLE:
    case OMPX_DOUBLE_INT64:
        return pair_layout{OMPX_DOUBLE, 8, 16};
    case OMPX_2INT64:
        return pair_layout{OMPX_INT64, 8, 16};
    default:
        return std::nullopt;
    }
}

/// What differs between the vendors.
struct vendor {
    const char *name;
    const char *library;
    const char *stand_in; ///< what its own functions' names begin with; null: it is no stand-in
    result<std::unique_ptr<backend>> (*create)(const library_path_option &option);
    const void *kernels; ///< null: this build has none
    const char *failing; ///< the variable that lets calls fail
    const char *load;
    const char *launch;
};
const vendor cuda{
    "cuda",           FAKE_CUDA_LIBRARY,  "fake_cuda",     create_cuda, kernels::reduction_ptx(),
    "FAKE_CUDA_FAIL", "cuModuleLoadData", "cuLaunchKernel"};
const vendor hip{"hip",
                 FAKE_HIP_LIBRARY,
                 "fake_hip",
                 create_hip,
                 kernels::reduction_amdgpu(),
                 "FAKE_HIP_FAIL",
                 "hipModuleLoadData",
                 "hipModuleLaunchKernel"};

vendor without_stand_in(vendor of) {
    of.library = "";
    of.stand_in = nullptr;
    return of;
}

class device_reduce_test : public ::testing::TestWithParam<vendor> {
protected:
    static constexpr device_id zero = device_id(0);
    static constexpr device_id next = device_id(1);

    void SetUp() override {
        ::unsetenv(GetParam().failing);
        ::unsetenv("FAKE_HIP_ARCH");
        if (is_stand_in()) {
            stand_in_ = ::dlopen(GetParam().library, RTLD_NOW | RTLD_LOCAL);
            ASSERT_NE(stand_in_, nullptr) << ::dlerror();
        }
        if (GetParam().kernels == nullptr) {
            GTEST_SKIP() << "this build has no kernels";
        }
        auto made = GetParam().create({.path = GetParam().library});
        if (!made && !is_stand_in()) {
            GTEST_SKIP() << made.failure().message();
        }
        backend_ = made.take();
        memory_ = backend_->reserve(zero, reserved_bytes).take();
        ASSERT_TRUE(memory_->commit(0, reserved_bytes).ok());
        queue_ = backend_->make_queue(zero).take();
    }
    void TearDown() override {
        ::unsetenv(GetParam().failing);
        queue_.reset();
        memory_.reset();
        backend_.reset();
        if (!is_stand_in()) {
            return;
        }
        EXPECT_STREQ(ask<const char *>("_complaints"), "");
        EXPECT_EQ(ask<int>("_alive"), 0) << "not given back";
    }
    [[nodiscard]] static bool is_stand_in() { return GetParam().stand_in != nullptr; }
    void fail(const char *call, const char *code) {
        ::setenv(GetParam().failing, (std::string(call) + '=' + code).c_str(), 1);
    }

    /// Any bits for numbers; 0 and 1 for bool. Of floating types every second time zeros of both
    /// signs, infinities and NaNs, which any bits seldom are.
    bytes any_values(ompx_type_t type, std::size_t count) {
        if (auto const layout = pair_layout_of(type)) {
            return any_pairs(type, *layout, count);
        }
        bytes made(count * ompx_type_size(type));
        if (test::format_of(type) && (random_() & 1) != 0) {
            std::size_t const member = random_();
            for (std::size_t i = 0; i < count; ++i) {
                test::put_special(&made[i * ompx_type_size(type)], member, i, type);
            }
            return made;
        }
        for (std::byte &each : made) {
            each = static_cast<std::byte>(type == OMPX_BOOL ? random_() & 1 : random_() & 255);
        }
        return made;
    }
    /// Few different values, so that many are equal and indices decide, and few indices.
    bytes any_pairs(ompx_type_t type, const pair_layout &layout, std::size_t count) {
        std::size_t const size = ompx_type_size(type);
        bytes made(count * size);
        for (std::size_t i = 0; i < count; ++i) {
            std::byte *const pair = &made[i * size];
            if (test::format_of(layout.value)) {
                test::put_special(pair, random_() % 16, i % 3, layout.value);
            } else {
                *pair = static_cast<std::byte>(random_() % 3);
            }
            pair[layout.index] = static_cast<std::byte>(random_() % 4);
        }
        return made;
    }
    /// Sets what no operator defines to zero.
    static void clear_padding(ompx_type_t type, bytes &elements) {
        auto const layout = pair_layout_of(type);
        if (!layout) {
            return;
        }
        std::size_t const size = ompx_type_size(type);
        for (std::size_t at = 0; at < elements.size(); at += size) {
            std::fill(&elements[at] + ompx_type_size(layout->value), &elements[at] + layout->index,
                      std::byte{0});
            std::fill(&elements[at] + layout->end, &elements[at] + size, std::byte{0});
        }
    }
    void write(std::size_t at, const bytes &from) {
        ASSERT_TRUE(queue_->copy(memory_->base() + at, from.data(), from.size()).ok());
        ASSERT_TRUE(queue_->wait().ok());
    }
    bytes read(std::size_t at, std::size_t nbytes) {
        bytes into(nbytes);
        EXPECT_TRUE(queue_->copy(into.data(), memory_->base() + at, nbytes).ok());
        EXPECT_TRUE(queue_->wait().ok());
        return into;
    }
    /// Arrays of `count` elements at multiples of `distance`, reduced to the place of `dst`.
    void compare(const reduction &how, std::size_t num, std::size_t count, std::size_t distance,
                 std::size_t dst) {
        std::size_t const nbytes = count * ompx_type_size(how.type);
        ASSERT_LE(nbytes, distance);
        std::vector<bytes> operands;
        std::vector<const void *> sources;
        for (std::size_t i = 0; i < num; ++i) {
            operands.push_back(any_values(how.type, count));
            write(i * distance, operands.back());
            sources.push_back(memory_->base() + i * distance);
        }
        ASSERT_TRUE(queue_->reduce(how, memory_->base() + dst * distance, sources, count).ok());
        auto const combine = coll::find_kernel(how.type, how.op == OMPX_AVG ? OMPX_SUM : how.op);
        bytes wanted = operands[0];
        for (std::size_t i = 1; i < num; ++i) {
            combine(wanted.data(), wanted.data(), operands[i].data(), count);
        }
        if (how.op == OMPX_AVG) {
            coll::find_average(how.type)(wanted.data(), count, how.divisor);
        }
        bool const has_one_nan = how.op == OMPX_MIN || how.op == OMPX_MAX;
        bytes result = read(dst * distance, nbytes);
        clear_padding(how.type, wanted);
        clear_padding(how.type, result);
        ASSERT_TRUE(has_one_nan ? result == wanted : is_same(how.type, result, wanted))
            << "type " << how.type << ", operator " << how.op << ", " << num << " arrays of "
            << count;
    }
    /// Equal bits, but for which NaN a sum or a product is: that the processor's instructions
    /// choose.
    template <typename T>
    static bool is_same_number(T one, T other) {
        return std::memcmp(&one, &other, sizeof(T)) == 0 || (one != one && other != other);
    }
    template <typename T>
    static bool are_same(const bytes &one, const bytes &other) {
        for (std::size_t at = 0; at < one.size(); at += sizeof(T)) {
            T a;
            T b;
            std::memcpy(&a, &one[at], sizeof(T));
            std::memcpy(&b, &other[at], sizeof(T));
            if (!is_same_number(a, b)) {
                return false;
            }
        }
        return true;
    }
    static bool is_same(ompx_type_t type, const bytes &one, const bytes &other) {
        switch (type) {
        case OMPX_FLOAT:
        case OMPX_FLOAT_COMPLEX:
            return are_same<float>(one, other);
        case OMPX_DOUBLE:
        case OMPX_DOUBLE_COMPLEX:
            return are_same<double>(one, other);
        case OMPX_FLOAT16:
            return are_same_small(one, other, 0x7c00);
        case OMPX_BFLOAT16:
            return are_same_small(one, other, 0x7f80);
        default:
            return one == other;
        }
    }
    static bool are_same_small(const bytes &one, const bytes &other, unsigned infinity) {
        for (std::size_t at = 0; at < one.size(); at += 2) {
            std::uint16_t a = 0;
            std::uint16_t b = 0;
            std::memcpy(&a, &one[at], 2);
            std::memcpy(&b, &other[at], 2);
            if (a != b && ((a & 0x7fffU) <= infinity || (b & 0x7fffU) <= infinity)) {
                return false;
            }
        }
        return true;
    }

    template <typename T>
    T ask(const char *what) {
        std::string const name = std::string(GetParam().stand_in) + what;
        return reinterpret_cast<T (*)()>(::dlsym(stand_in_, name.c_str()))();
    }

    void *stand_in_ = nullptr;
    std::unique_ptr<backend> backend_;
    std::unique_ptr<memory> memory_;
    std::unique_ptr<queue> queue_;
    std::mt19937 random_{7};
};

TEST_P(device_reduce_test, every_type_and_operator_gives_the_bits_of_the_processor) {
    int num_reduced = 0;
    for (ompx_type_t type = OMPX_INT8; type <= OMPX_DOUBLE_INT64; ++type) {
        for (ompx_op_t const op : all_operators) {
            bool const makes_sense =
                coll::find_kernel(type, op == OMPX_AVG ? OMPX_SUM : op) != nullptr;
            bool const can = backend_->can_reduce(zero, {type, op});
            // All but long double, which no GPU has.
            bool const is_long = type == OMPX_LONG_DOUBLE || type == OMPX_LONG_DOUBLE_INT;
            ASSERT_EQ(can, makes_sense && !is_long) << type << ' ' << op;
            if (can) {
                for (int round = 0; round < 4; ++round) {
                    compare({type, op, 3}, 3, 1003, 65536, 4);
                }
                num_reduced += 1;
            } else {
                const void *source = memory_->base();
                EXPECT_EQ(
                    queue_->reduce({type, op}, memory_->base(), {&source, 1}, 1).failure().code(),
                    OMPX_ERR_UNSUPPORTED);
            }
        }
    }
    EXPECT_EQ(num_reduced, 8 * 10 + 4 * 7 + 2 * 3 + 7 + 9 * 2);
}

TEST_P(device_reduce_test, any_number_of_arrays_of_any_length) {
    for (std::size_t const num : {1U, 2U, 5U, 64U}) {
        for (std::size_t const count : {1U, 3U, 4U, 255U, 1024U, 2047U}) {
            compare({OMPX_FLOAT, OMPX_SUM}, num, count, 16384, 64);
        }
    }
    compare({OMPX_INT16, OMPX_MAX}, 3, 200000, 400000, 0); // more elements than threads; in place
}

TEST_P(device_reduce_test, addresses_that_are_not_aligned_are_reduced_one_by_one) {
    compare({OMPX_FLOAT, OMPX_SUM}, 3, 1000, 4004, 3);
    compare({OMPX_INT8, OMPX_BXOR}, 3, 999, 1001, 2);
    compare({OMPX_DOUBLE_COMPLEX, OMPX_PROD}, 3, 50, 808, 3);
    compare({OMPX_DOUBLE_INT, OMPX_MINLOC}, 3, 50, 808, 3);
    compare({OMPX_FLOAT_INT, OMPX_MAXLOC}, 3, 51, 412, 3);
}

TEST_P(device_reduce_test, reductions_and_copies_of_a_queue_come_in_order) {
    using words = std::vector<std::uint32_t>;
    words const first(100, 5);
    words const second(100, 8);
    words result(100);
    std::byte *const base = memory_->base();
    const void *const sources[] = {base, base + 4096};
    ASSERT_TRUE(queue_->copy(base, first.data(), 400).ok());
    ASSERT_TRUE(queue_->copy(base + 4096, second.data(), 400).ok());
    ASSERT_TRUE(queue_->reduce({OMPX_UINT32, OMPX_SUM}, base, sources, 100).ok());
    ASSERT_TRUE(queue_->copy(result.data(), base, 400).ok());
    EXPECT_TRUE(!is_stand_in() || !queue_->is_idle().value());
    ASSERT_TRUE(queue_->wait().ok());
    EXPECT_EQ(result, words(100, 13));
}

TEST_P(device_reduce_test, arguments_that_make_no_sense_are_errors) {
    const void *source = memory_->base();
    reduction const how{OMPX_FLOAT, OMPX_SUM};
    EXPECT_EQ(queue_->reduce(how, nullptr, {&source, 1}, 1).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(queue_->reduce(how, memory_->base(), {}, 1).failure().code(), OMPX_ERR_ARG);
    std::vector<const void *> const many(queue::max_sources + 1, source);
    EXPECT_EQ(queue_->reduce(how, memory_->base(), many, 1).failure().code(), OMPX_ERR_ARG);
    EXPECT_TRUE(queue_->reduce(how, nullptr, {}, 0).ok());
    EXPECT_FALSE(backend_->can_reduce(device_id(7), how));
    EXPECT_FALSE(backend_->can_reduce(zero, {OMPX_TYPE_OF_SIZE(4), OMPX_SUM}));
    EXPECT_FALSE(backend_->can_reduce(zero, {OMPX_INT32, OMPX_REPLACE}));
}

TEST_P(device_reduce_test, driver_that_does_not_take_the_kernels_leaves_the_copies) {
    if (!is_stand_in()) {
        GTEST_SKIP() << "it takes them";
    }
    fail(GetParam().load, "222");
    reduction const how{OMPX_FLOAT, OMPX_SUM};
    EXPECT_FALSE(backend_->can_reduce(zero, how));
    ::unsetenv(GetParam().failing);
    const void *source = memory_->base();
    status const failed = queue_->reduce(how, memory_->base(), {&source, 1}, 1);
    ASSERT_FALSE(failed.ok()); // asked once
    EXPECT_THAT(failed.failure().message(), HasSubstr(GetParam().load));
    EXPECT_TRUE(backend_->can_reduce(next, how)); // another device has its own
    write(0, bytes(100));
}

TEST_P(device_reduce_test, launch_that_fails_names_the_call) {
    if (!is_stand_in()) {
        GTEST_SKIP() << "it does not fail";
    }
    fail(GetParam().launch, "700");
    const void *source = memory_->base();
    status const failed = queue_->reduce({OMPX_FLOAT, OMPX_SUM}, memory_->base(), {&source, 1}, 1);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.failure().code(), OMPX_ERR_SYSTEM);
    EXPECT_THAT(failed.failure().message(), HasSubstr(GetParam().launch));
}

std::uint64_t word_of(const bytes &of) {
    std::uint64_t word = 0;
    std::memcpy(&word, of.data(), of.size());
    return word;
}

TEST_P(device_reduce_test, updates_of_words_equal_those_of_the_processor) {
    constexpr std::size_t num = queue::max_updates;
    auto const pinned = backend_->allocate_pinned(num * sizeof(std::uint64_t)).take();
    auto *const old_values = reinterpret_cast<std::uint64_t *>(pinned.base());
    int num_operations = 0;
    ASSERT_TRUE(queue_->update({}, nullptr).ok()); // loads the kernel
    for (ompx_type_t const type :
         {OMPX_INT32, OMPX_UINT32, OMPX_INT64, OMPX_UINT64, OMPX_FLOAT, OMPX_DOUBLE}) {
        for (ompx_op_t op = 0; op <= OMPX_NO_OP; ++op) {
            if (!rma::check_atomic(type, op)) {
                continue;
            }
            ++num_operations;
            std::size_t const size = ompx_type_size(type);
            // Each word twice, so that the order matters.
            bytes wanted = any_values(type, num / 2);
            write(64, wanted);
            std::vector<word_update> updates;
            std::vector<std::uint64_t> wanted_old;
            for (std::size_t i = 0; i < num; ++i) {
                std::size_t const at = i % (num / 2) * size;
                std::uint64_t const operand = word_of(any_values(type, 1));
                std::uint64_t old = 0;
                rma::apply_atomic(&wanted[at], &operand, &old, type, op);
                wanted_old.push_back(old);
                updates.push_back(
                    {.address = reinterpret_cast<std::uintptr_t>(memory_->base()) + 64 + at,
                     .operand = operand,
                     .type = type,
                     .op = op});
            }
            ASSERT_TRUE(queue_->update(updates, old_values).ok());
            ASSERT_TRUE(queue_->wait().ok());
            EXPECT_EQ(std::vector<std::uint64_t>(old_values, old_values + num), wanted_old)
                << "type " << type << ", operator " << op;
            EXPECT_EQ(read(64, wanted.size()), wanted) << "type " << type << ", operator " << op;
        }
    }
    EXPECT_EQ(num_operations, 4 * 8 + 2 * 5);
}

TEST_P(device_reduce_test, words_are_compared_and_swapped) {
    auto const pinned = backend_->allocate_pinned(64).take();
    auto *const old_values = reinterpret_cast<std::uint64_t *>(pinned.base());
    auto const base = reinterpret_cast<std::uintptr_t>(memory_->base());
    auto const swap = [](std::uintptr_t at, std::uint64_t expected, std::uint64_t desired,
                         ompx_type_t type) {
        return word_update{at,   expected,     desired,
                           type, OMPX_REPLACE, word_update::kind::compare_swap};
    };
    std::vector<std::uint64_t> const before = {7, 0x1122334455667788};
    std::vector<std::uint64_t> after(2);
    ASSERT_TRUE(queue_->copy(memory_->base(), before.data(), 16).ok());
    word_update const updates[] = {swap(base, 8, 1, OMPX_INT64), swap(base, 7, 9, OMPX_UINT64),
                                   swap(base + 8, 0x55667788, 5, OMPX_INT32),
                                   swap(base + 12, 0, 6, OMPX_FLOAT)};
    ASSERT_TRUE(queue_->update(updates, old_values).ok());
    ASSERT_TRUE(queue_->copy(after.data(), memory_->base(), 16).ok());
    ASSERT_TRUE(queue_->wait().ok());
    EXPECT_EQ(std::vector<std::uint64_t>(old_values, old_values + 4),
              (std::vector<std::uint64_t>{7, 7, 0x55667788, 0x11223344}));
    EXPECT_EQ(after, (std::vector<std::uint64_t>{9, 0x1122334400000005}));
}

TEST_P(device_reduce_test, updates_that_cannot_be_executed_are_errors) {
    std::vector<word_update> const many(queue::max_updates + 1);
    EXPECT_EQ(queue_->update(many, nullptr).failure().code(), OMPX_ERR_ARG);
    if (!is_stand_in()) {
        return;
    }
    fail(GetParam().load, "222");
    status const refused = queue_->update({}, nullptr);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.failure().message(), HasSubstr(GetParam().load));
    ::unsetenv(GetParam().failing);
    EXPECT_TRUE(backend_->can_reduce(zero, {OMPX_FLOAT, OMPX_SUM})); // a module of its own
    fail(GetParam().launch, "700");
    auto const other = backend_->make_queue(next).take();
    status const failed = other->update({}, nullptr);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.failure().message(), HasSubstr(GetParam().launch));
}

INSTANTIATE_TEST_SUITE_P(all, device_reduce_test, ::testing::Values(cuda, hip),
                         [](auto const &of) { return of.param.name; });

// What scripts/gpu-check.sh runs.
INSTANTIATE_TEST_SUITE_P(real, device_reduce_test, ::testing::Values(without_stand_in(cuda)),
                         [](auto const &of) { return of.param.name; });

class hip_images_test : public device_reduce_test {};

TEST_P(hip_images_test, each_architecture_of_the_build_has_one) {
    reduction const how{OMPX_BFLOAT16, OMPX_AVG};
    for (const char *const arch : {DIOMP_AMD_KERNEL_ARCHS}) {
        ::setenv("FAKE_HIP_ARCH", arch, 1);
        EXPECT_TRUE(hip.create({.path = hip.library}).value()->can_reduce(zero, how)) << arch;
    }
    ::setenv("FAKE_HIP_ARCH", "gfx803", 1);
    EXPECT_FALSE(backend_->can_reduce(zero, how));
    const void *source = memory_->base();
    status const failed = queue_->reduce(how, memory_->base(), {&source, 1}, 1);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.failure().message(), HasSubstr("hipModuleLoadData"));
}

INSTANTIATE_TEST_SUITE_P(all, hip_images_test, ::testing::Values(hip),
                         [](auto const &of) { return of.param.name; });

} // namespace
} // namespace diomp::device
