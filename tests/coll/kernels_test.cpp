// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops for the processor, in the versions that it may choose from.
#include "coll/internal/operators.h"
#include "coll/special_values.h"

#include <gtest/gtest.h>

#include <vector>

namespace diomp::coll {
namespace {

using bytes = std::vector<std::byte>;
using test::fields;
using test::float_format;

class kernels_test : public ::testing::TestWithParam<instruction_set> {
protected:
    /// All pairs of zeros, numbers, infinities, and quiet and signalling NaNs, of both signs.
    static std::vector<fields> all_kinds(float_format of) {
        std::uint64_t const quiet = std::uint64_t{1} << (of.fraction_bits - 1);
        unsigned const top = of.all_ones();
        std::vector<fields> made;
        for (bool const negative : {false, true}) {
            made.insert(made.end(), {{negative, 0, 0},
                                     {negative, 0, 1},
                                     {negative, 0, of.fraction_mask()},
                                     {negative, 1, 0},
                                     {negative, top / 2, 0},
                                     {negative, top / 2, 5},
                                     {negative, top - 1, of.fraction_mask()},
                                     {negative, top, 0},
                                     {negative, top, quiet},
                                     {negative, top, quiet | 3},
                                     {negative, top, of.fraction_mask()},
                                     {negative, top, 1}});
        }
        return made;
    }
};

constexpr ompx_type_t floating_types[] = {OMPX_FLOAT16, OMPX_BFLOAT16, OMPX_FLOAT, OMPX_DOUBLE,
                                          OMPX_LONG_DOUBLE};

// Every pair comes at every place in vectors and behind them.
TEST_P(kernels_test, minimum_and_maximum_follow_the_standard) {
    for (ompx_type_t const type : floating_types) {
        auto const format = test::format_of(type);
        if (!format) {
            continue;
        }
        std::size_t const unit = ompx_type_size(type);
        std::vector<fields> const kinds = all_kinds(*format);
        std::size_t const count = kinds.size() * kinds.size();
        bytes a(count * unit);
        bytes b(count * unit);
        for (std::size_t i = 0; i < count; ++i) {
            test::write_fields(&a[i * unit], kinds[i / kinds.size()], *format);
            test::write_fields(&b[i * unit], kinds[i % kinds.size()], *format);
        }
        for (ompx_op_t const op : {OMPX_MIN, OMPX_MAX}) {
            auto const combine = find_kernel(type, op, GetParam());
            for (std::size_t first = 0; first < count; ++first) {
                std::size_t const length = std::min<std::size_t>(count - first, 70);
                bytes out(length * unit);
                combine(out.data(), &a[first * unit], &b[first * unit], length);
                for (std::size_t i = 0; i < length; ++i) {
                    std::size_t const pair = first + i;
                    fields const expected = test::extreme(kinds[pair / kinds.size()],
                                                          kinds[pair % kinds.size()], op, *format);
                    ASSERT_EQ(test::read_fields(&out[i * unit], *format), expected)
                        << "type " << type << ", operator " << op << ", pair " << pair << " at "
                        << i << " of " << length;
                }
            }
        }
    }
}

TEST_P(kernels_test, minimum_and_maximum_of_integers) {
    auto const combine = find_kernel(OMPX_INT8, OMPX_MIN, GetParam());
    auto const combine_unsigned = find_kernel(OMPX_UINT8, OMPX_MAX, GetParam());
    std::vector<std::int8_t> a(300, -3);
    std::vector<std::int8_t> const b(300, 2);
    combine(a.data(), a.data(), b.data(), a.size());
    EXPECT_EQ(a, std::vector<std::int8_t>(300, -3));
    combine_unsigned(a.data(), a.data(), b.data(), a.size());
    EXPECT_EQ(a, std::vector<std::int8_t>(300, -3)) << "253 without sign";
}

/// The bits that count; of NaNs but that they are.
bool is_same(const std::byte *one, const std::byte *other, ompx_type_t type) {
    auto const format = test::format_of(type);
    std::size_t const parts = test::is_complex(type) ? 2 : 1;
    if (!format) {
        return std::memcmp(one, other, test::counting_bytes(type)) == 0;
    }
    bool same = true;
    for (std::size_t part = 0; part < parts; ++part) {
        std::size_t const at = part * (ompx_type_size(type) / parts);
        fields const left = test::read_fields(one + at, *format);
        fields const right = test::read_fields(other + at, *format);
        same = same && (left == right || (is_nan(left, *format) && is_nan(right, *format)));
    }
    return same;
}

// The result may take the place of either operand; in all versions it is that of the baseline.
TEST_P(kernels_test, every_type_and_operator_in_place_of_either_operand) {
    constexpr std::size_t count = 1003;
    for (ompx_type_t type = OMPX_INT8; type <= OMPX_BOOL; ++type) {
        if (type == OMPX_LONG_DOUBLE && !test::format_of(type)) {
            continue;
        }
        std::size_t const unit = ompx_type_size(type);
        bytes a(count * unit);
        bytes b(count * unit);
        for (std::size_t i = 0; i < count; ++i) {
            test::put_special(&a[i * unit], 0, i, type);
            test::put_special(&b[i * unit], 1, i, type);
        }
        for (ompx_op_t op = OMPX_SUM; op <= OMPX_LOR; ++op) {
            auto const combine = find_kernel(type, op, GetParam());
            if (combine == nullptr) {
                continue;
            }
            bytes expected(count * unit);
            find_kernel(type, op, instruction_set::baseline)(expected.data(), a.data(), b.data(),
                                                             count);
            bytes apart(count * unit);
            bytes left = a;
            bytes right = b;
            combine(apart.data(), a.data(), b.data(), count);
            combine(left.data(), left.data(), b.data(), count);
            combine(right.data(), a.data(), right.data(), count);
            for (std::size_t i = 0; i < count * unit; i += unit) {
                bool const all_same =
                    is_same(&apart[i], &expected[i], type) &&
                    std::memcmp(&apart[i], &left[i], test::counting_bytes(type)) == 0 &&
                    std::memcmp(&apart[i], &right[i], test::counting_bytes(type)) == 0;
                ASSERT_TRUE(all_same)
                    << "type " << type << ", operator " << op << ", element " << i / unit;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(versions, kernels_test,
                         ::testing::Values(instruction_set::best, instruction_set::baseline),
                         [](auto const &of) {
                             return of.param == instruction_set::best ? "best" : "baseline";
                         });

} // namespace
} // namespace diomp::coll
