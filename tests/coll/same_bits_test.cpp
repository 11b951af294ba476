// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What diomp.h promises about the bits of reductions: all members get the same, of NaNs with
// different payloads and of zeros with different signs, too; minimum and maximum follow IEEE
// 754-2019. Sizes are such that each algorithm is used, on one node and between nodes.
#include "coll/special_values.h"
#include "diomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace diomp::test;
using bytes = std::vector<std::byte>;

constexpr std::size_t most_bytes = 300'000;
/// With the lines; beside them; in stages or with the letters of an agreement; in stages that have
/// grown; by recursive doubling; in parts.
constexpr std::size_t all_sizes[] = {1, 200, 6000, 40'000, 90'000, 200'000};

/// Members of a group in its order. Element `index` of member `m` is put_special(m, index).
struct party {
    explicit party(ompx_group_t of = ompx_group_world)
        : group(of), self(static_cast<std::size_t>(ompx_group_rank(of))),
          size(static_cast<std::size_t>(ompx_group_size(of))) {}
    ompx_group_t group;
    std::size_t self;
    std::size_t size;
};

/// Minimum and maximum have one right result; a sum with a NaN has to be one.
bool is_extreme(ompx_op_t op) { return op == OMPX_MIN || op == OMPX_MAX; }

/// What all members bring, and the extremes of the first 1, 2, ... of them.
class values {
public:
    values(const party &of, ompx_type_t type, std::size_t nbytes = most_bytes)
        : type_(type), unit_(ompx_type_size(type)),
          count_(std::max<std::size_t>(1, nbytes / unit_)) {
        for (std::size_t member = 0; member < of.size; ++member) {
            bytes &made = operands_.emplace_back(count_ * unit_);
            for (std::size_t i = 0; i < count_; ++i) {
                put_special(&made[i * unit_], member, i, type);
            }
        }
        has_rule_ = format_of(type) && !is_complex(type);
        for (std::size_t num = 1; has_rule_ && num <= of.size; ++num) {
            extend(least_, OMPX_MIN, num - 1);
            extend(greatest_, OMPX_MAX, num - 1);
        }
    }

    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] const bytes &operand(std::size_t member) const { return operands_[member]; }

    /// Of a result for elements [first, first + count) of members [0, num).
    [[nodiscard]] std::size_t num_wrong(const std::byte *result, std::size_t first,
                                        std::size_t count, std::size_t num, ompx_op_t op) const {
        if (!has_rule_ || num == 0 || !(is_extreme(op) || sums_with_nan_are_nan(op))) {
            return 0;
        }
        const bytes &expected = op == OMPX_MIN ? least_[num - 1] : greatest_[num - 1];
        float_format const format = *format_of(type_);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::byte *const wanted = &expected[(first + i) * unit_];
            const std::byte *const found = result + i * unit_;
            if (is_extreme(op)) {
                wrong += std::memcmp(found, wanted, counting_bytes(type_)) == 0 ? 0 : 1;
            } else if (is_nan(read_fields(wanted, format), format)) {
                wrong += is_nan(read_fields(found, format), format) ? 0 : 1;
            }
        }
        return wrong;
    }

private:
    /// With one operand more.
    void extend(std::vector<bytes> &all, ompx_op_t op, std::size_t member) {
        bytes made = operands_[member];
        float_format const format = *format_of(type_);
        for (std::size_t i = 0; member > 0 && i < count_; ++i) {
            fields const before = read_fields(&all.back()[i * unit_], format);
            fields const next = read_fields(&made[i * unit_], format);
            write_fields(&made[i * unit_], extreme(before, next, op, format), format);
        }
        all.push_back(std::move(made));
    }

    ompx_type_t type_;
    std::size_t unit_;
    std::size_t count_;
    bool has_rule_ = false;
    std::vector<bytes> operands_;
    std::vector<bytes> least_;
    std::vector<bytes> greatest_;
};

/// Of what counts in `count` elements.
std::uint64_t digest(const std::byte *elements, std::size_t count, ompx_type_t type) {
    std::size_t const unit = ompx_type_size(type);
    std::uint64_t made = 1;
    std::size_t const step = type == OMPX_LONG_DOUBLE ? unit : sizeof(std::uint64_t);
    for (std::size_t at = 0; at < count * unit; at += step) {
        std::uint64_t words[2] = {0, 0};
        std::size_t const wanted = type == OMPX_LONG_DOUBLE ? counting_bytes(type) : step;
        std::memcpy(words, elements + at, std::min(wanted, count * unit - at));
        made = scramble(made + words[0]) ^ words[1];
    }
    return made;
}

std::vector<std::uint64_t> on_all(const party &of, std::uint64_t own) {
    std::vector<std::uint64_t> all(of.size);
    EXPECT_EQ(ompx_allgather(all.data(), &own, sizeof(own), of.group), OMPX_SUCCESS);
    return all;
}

enum class form { separate, in_place, queued, symmetric };
constexpr form all_forms[] = {form::separate, form::in_place, form::queued, form::symmetric};

/// Where results and, in place or in symmetric memory, operands are.
class buffers {
public:
    explicit buffers(std::size_t nbytes = most_bytes)
        : room_(nbytes),
          symmetric_(static_cast<std::byte *>(ompx_alloc(2 * nbytes, 64, OMPX_MEM_SYMMETRIC))),
          own_(nbytes) {}
    ~buffers() { EXPECT_EQ(ompx_free(symmetric_), OMPX_SUCCESS); }
    buffers(const buffers &) = delete;
    buffers &operator=(const buffers &) = delete;

    /// As the form wants them, with the operand; results begin as bytes that nothing leaves.
    void fill(form how, const bytes &operand, std::size_t nbytes) {
        dst_ = how == form::symmetric ? symmetric_ : own_.data();
        std::fill_n(dst_, nbytes, std::byte{0x5a});
        src_ = operand.data();
        if (how == form::in_place || how == form::symmetric) {
            std::byte *const to = how == form::in_place ? dst_ : symmetric_ + room_;
            std::copy_n(operand.data(), nbytes, to);
            src_ = to;
        }
    }
    [[nodiscard]] std::byte *dst() const { return dst_; }
    [[nodiscard]] const std::byte *src() const { return src_; }

private:
    std::size_t room_;
    std::byte *symmetric_;
    bytes own_;
    std::byte *dst_ = nullptr;
    const std::byte *src_ = nullptr;
};

int wait_for(int started, ompx_event_t *event) {
    return started == OMPX_SUCCESS ? ompx_event_wait(event) : started;
}

std::string name_of(ompx_type_t type, ompx_op_t op, std::size_t count, form how) {
    return "type " + std::to_string(type) + ", operator " + std::to_string(op) + ", " +
           std::to_string(count) + " elements, form " + std::to_string(static_cast<int>(how));
}

void try_allreduce(const party &of, const values &brought, ompx_type_t type, ompx_op_t op,
                   std::size_t count, form how, buffers &memory) {
    memory.fill(how, brought.operand(of.self), count * ompx_type_size(type));
    ompx_event_t event = nullptr;
    int const outcome = how == form::queued
                            ? wait_for(ompx_allreduce_nb(memory.dst(), memory.src(), count, type,
                                                         op, of.group, &event),
                                       &event)
                            : ompx_allreduce(memory.dst(), memory.src(), count, type, op, of.group);
    ASSERT_EQ(outcome, OMPX_SUCCESS) << ompx_last_error();
    ASSERT_EQ(brought.num_wrong(memory.dst(), 0, count, of.size, op), 0U)
        << name_of(type, op, count, how);
    std::uint64_t const own = digest(memory.dst(), count, type);
    ASSERT_THAT(on_all(of, own), testing::Each(own)) << name_of(type, op, count, how);
}

std::vector<ompx_op_t> operators_of(ompx_type_t type) {
    std::vector<ompx_op_t> made;
    for (ompx_op_t op = OMPX_SUM; op <= OMPX_LOR; ++op) {
        bool const is_logical = op == OMPX_LAND || op == OMPX_LOR;
        if (makes_sense(type, op) && !(is_complex(type) && is_logical)) {
            made.push_back(op);
        }
    }
    if (type != OMPX_BOOL) {
        made.push_back(OMPX_AVG);
    }
    return made;
}

/// Whether the order of operands shows in bits: then all sizes count.
bool has_order(ompx_type_t type, ompx_op_t op) {
    return format_of(type) && (is_extreme(op) || op == OMPX_SUM || op == OMPX_PROD);
}

// One form after the other.
void try_all_allreduces(const party &of) {
    buffers memory;
    std::size_t turn = 0;
    for (ompx_type_t type = OMPX_INT8; type <= OMPX_BOOL; ++type) {
        values const brought(of, type);
        for (ompx_op_t const op : operators_of(type)) {
            for (std::size_t const nbytes : all_sizes) {
                if (!has_order(type, op) && nbytes != 1 && nbytes != 90'000) {
                    continue;
                }
                std::size_t const count = std::max<std::size_t>(1, nbytes / ompx_type_size(type));
                ASSERT_NO_FATAL_FAILURE(
                    try_allreduce(of, brought, type, op, count, all_forms[turn++ % 4], memory));
            }
        }
    }
}

TEST(same_bits, allreduce_of_every_type_and_operator) { try_all_allreduces(party()); }

// In several pieces of columns.
TEST(same_bits, large_allreduce) {
    constexpr std::size_t nbytes = 2'500'000;
    party const of;
    values const brought(of, OMPX_DOUBLE, nbytes);
    buffers memory(nbytes);
    for (ompx_op_t const op : {OMPX_SUM, OMPX_MAX}) {
        for (form const how : all_forms) {
            ASSERT_NO_FATAL_FAILURE(
                try_allreduce(of, brought, OMPX_DOUBLE, op, brought.count(), how, memory));
        }
    }
}

// Not in the order of nodes.
TEST(same_bits, allreduce_of_members_that_are_interleaved) {
    int const size = ompx_num_ranks();
    if (size < 3) {
        GTEST_SKIP() << "two ranks have one order and its reverse";
    }
    std::vector<int> ranks;
    for (int first : {1, 0}) {
        for (int rank = first; rank < size; rank += 2) {
            ranks.push_back(rank);
        }
    }
    ompx_group_t group = OMPX_GROUP_NONE;
    ASSERT_EQ(ompx_group_create(&group, ranks.data(), size), OMPX_SUCCESS);
    party const of(group);
    buffers memory;
    for (ompx_type_t const type : {OMPX_FLOAT, OMPX_LONG_DOUBLE}) {
        values const brought(of, type);
        for (ompx_op_t const op : {OMPX_SUM, OMPX_MIN}) {
            for (std::size_t const nbytes : all_sizes) {
                std::size_t const count = std::max<std::size_t>(1, nbytes / ompx_type_size(type));
                ASSERT_NO_FATAL_FAILURE(
                    try_allreduce(of, brought, type, op, count, form::separate, memory));
            }
        }
    }
    EXPECT_EQ(ompx_group_free(&group), OMPX_SUCCESS);
}

/// The calls beside allreduce whose results the rule says something about.
struct other_calls {
    party of;
    ompx_type_t type;
    ompx_op_t op;
    std::size_t count;
    const values &brought;
    buffers &memory;

    void check(const char *call, int outcome, std::size_t first, std::size_t num) const {
        ASSERT_EQ(outcome, OMPX_SUCCESS) << ompx_last_error();
        ASSERT_EQ(brought.num_wrong(memory.dst(), first, count, num, op), 0U)
            << call << ", " << name_of(type, op, count, form::separate);
    }
    void reduce(int root) const {
        fill(form::separate, 1);
        int const outcome =
            ompx_reduce(memory.dst(), memory.src(), count, type, op, root, of.group);
        check("reduce", outcome, 0, of.self == static_cast<std::size_t>(root) ? of.size : 0);
    }
    void reduce_scatter(form how) const {
        fill(how, of.size);
        ompx_event_t event = nullptr;
        int const outcome =
            how == form::queued
                ? wait_for(ompx_reduce_scatter_nb(memory.dst(), memory.src(), count, type, op,
                                                  of.group, &event),
                           &event)
                : ompx_reduce_scatter(memory.dst(), memory.src(), count, type, op, of.group);
        check("reduce_scatter", outcome, of.self * count, of.size);
    }
    void scan(form how) const {
        fill(how, 1);
        check("scan", ompx_scan(memory.dst(), memory.src(), count, type, op, of.group), 0,
              of.self + 1);
    }
    void exscan(form how) const {
        fill(how, 1);
        check("exscan", ompx_exscan(memory.dst(), memory.src(), count, type, op, of.group), 0,
              of.self);
    }

private:
    void fill(form how, std::size_t num_blocks) const {
        memory.fill(how, brought.operand(of.self), num_blocks * count * ompx_type_size(type));
    }
};

TEST(same_bits, nans_and_zeros_in_all_other_reductions) {
    party const of;
    buffers memory;
    for (ompx_type_t const type :
         {OMPX_FLOAT16, OMPX_BFLOAT16, OMPX_FLOAT, OMPX_DOUBLE, OMPX_LONG_DOUBLE}) {
        if (!format_of(type)) {
            continue;
        }
        values const brought(of, type);
        for (ompx_op_t const op : {OMPX_MIN, OMPX_MAX, OMPX_SUM}) {
            for (std::size_t const nbytes : {1U, 6000U, 90'000U}) {
                std::size_t const fitting = brought.count() / of.size;
                std::size_t const wanted = std::max<std::size_t>(1, nbytes / ompx_type_size(type));
                other_calls const calls{of, type, op, std::min(wanted, fitting), brought, memory};
                ASSERT_NO_FATAL_FAILURE(calls.reduce(0));
                ASSERT_NO_FATAL_FAILURE(calls.reduce(static_cast<int>(of.size) - 1));
                for (form const how : {form::in_place, form::queued}) {
                    ASSERT_NO_FATAL_FAILURE(calls.reduce_scatter(how));
                }
                ASSERT_NO_FATAL_FAILURE(calls.scan(form::separate));
                ASSERT_NO_FATAL_FAILURE(calls.exscan(form::in_place));
            }
        }
    }
}

/// A value and what does not count for the order, as the sign of zero.
struct labelled {
    std::uint32_t value;
    std::uint32_t label;
};
void keep_first_of_largest(void *inout, const void *in, size_t count, ompx_type_t, void *) {
    auto *const kept = static_cast<labelled *>(inout);
    auto const *const other = static_cast<const labelled *>(in);
    for (size_t i = 0; i < count; ++i) {
        kept[i] = kept[i].value < other[i].value ? other[i] : kept[i];
    }
}

// It commutes by value, not by bits.
TEST(same_bits, operator_of_the_program_that_is_declared_commutative) {
    party const of;
    ompx_op_t op = 0;
    ASSERT_EQ(ompx_op_create(&op, keep_first_of_largest, nullptr, 1), OMPX_SUCCESS);
    auto const value_of = [](std::size_t member, std::size_t i) {
        return static_cast<std::uint32_t>(scramble(member + 31 * i) % 2);
    };
    for (std::size_t const nbytes : all_sizes) {
        std::size_t const count = std::max<std::size_t>(1, nbytes / sizeof(labelled));
        std::vector<labelled> mine(count);
        for (std::size_t i = 0; i < count; ++i) {
            mine[i] = {value_of(of.self, i), static_cast<std::uint32_t>(of.self)};
        }
        std::vector<labelled> result(count);
        ASSERT_EQ(ompx_allreduce(result.data(), mine.data(), count,
                                 OMPX_TYPE_OF_SIZE(sizeof(labelled)), op, of.group),
                  OMPX_SUCCESS)
            << ompx_last_error();
        std::size_t num_wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t best = 0;
            for (std::size_t member = 1; member < of.size; ++member) {
                best = value_of(best, i) < value_of(member, i) ? member : best;
            }
            num_wrong += result[i].label == best ? 0 : 1;
        }
        ASSERT_EQ(num_wrong, 0U) << count << " elements: not combined in the order of ranks";
    }
    EXPECT_EQ(ompx_op_free(&op), OMPX_SUCCESS);
}

} // namespace
