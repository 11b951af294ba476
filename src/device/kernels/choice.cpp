// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/kernels/choice.h"

#include "diomp/types.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace diomp::device::kernels {
namespace {

constexpr std::size_t vector_bytes = 16;
static_assert(queue::max_sources == reduction_arguments::max_sources);

/// A type in the terms of the kernels' names.
struct element {
    std::string_view name;
    std::string_view without_sign; ///< name without sign; empty: not an integer
    std::size_t nbytes = 0;        ///< 0: no kernel for the type
};

element element_of(ompx_type_t type) {
    switch (type) {
    case OMPX_INT8:
        return {"i8", "u8", 1};
    case OMPX_UINT8:
    case OMPX_BOOL:
        return {"u8", "u8", 1};
    case OMPX_INT16:
        return {"i16", "u16", 2};
    case OMPX_UINT16:
        return {"u16", "u16", 2};
    case OMPX_INT32:
        return {"i32", "u32", 4};
    case OMPX_UINT32:
        return {"u32", "u32", 4};
    case OMPX_INT64:
        return {"i64", "u64", 8};
    case OMPX_UINT64:
        return {"u64", "u64", 8};
    case OMPX_FLOAT16:
        return {"f16", "", 2};
    case OMPX_BFLOAT16:
        return {"bf16", "", 2};
    case OMPX_FLOAT:
        return {"f32", "", 4};
    case OMPX_DOUBLE:
        return {"f64", "", 8};
    default:
        return {};
    }
}

const char *operator_name(ompx_op_t op) {
    switch (op) {
    case OMPX_SUM:
        return "sum";
    case OMPX_PROD:
        return "prod";
    case OMPX_MIN:
        return "min";
    case OMPX_MAX:
        return "max";
    case OMPX_LAND:
        return "land";
    case OMPX_LOR:
        return "lor";
    case OMPX_BAND:
        return "band";
    case OMPX_BOR:
        return "bor";
    case OMPX_BXOR:
        return "bxor";
    case OMPX_AVG:
        return "avg";
    case OMPX_MINLOC:
        return "minloc";
    case OMPX_MAXLOC:
        return "maxloc";
    default:
        return nullptr;
    }
}

kernel_choice kernel_of(ompx_op_t op, std::string_view of, std::size_t nbytes,
                        std::size_t per_element = 1) {
    return {std::string("diomp_reduce_") + operator_name(op) + '_' + std::string(of), nbytes,
            per_element};
}

std::optional<kernel_choice> choose_complex(ompx_op_t op, bool is_double) {
    if (op == OMPX_SUM || op == OMPX_AVG) { // real and imaginary parts separately
        return is_double ? kernel_of(op, "f64", 8, 2) : kernel_of(op, "f32", 4, 2);
    }
    if (op == OMPX_PROD) {
        return is_double ? kernel_of(op, "c64", 16) : kernel_of(op, "c32", 8);
    }
    return std::nullopt;
}

element pair_of(ompx_type_t type) {
    switch (type) {
    case OMPX_FLOAT_INT:
        return {"f32_i32", "", 8};
    case OMPX_DOUBLE_INT:
        return {"f64_i32", "", 16};
    case OMPX_LONG_INT:
        return {"i64_i32", "", 16};
    case OMPX_2INT:
        return {"i32_i32", "", 8};
    case OMPX_SHORT_INT:
        return {"i16_i32", "", 8};
    case OMPX_2FLOAT:
        return {"f32_f32", "", 8};
    case OMPX_2DOUBLE:
        return {"f64_f64", "", 16};
    case OMPX_2INT64:
        return {"i64_i64", "", 16};
    case OMPX_DOUBLE_INT64:
        return {"f64_i64", "", 16};
    default:
        return {};
    }
}

std::optional<kernel_choice> choose_pair(const reduction &how) {
    element const of = pair_of(how.type);
    return of.nbytes != 0 ? std::optional(kernel_of(how.op, of.name, of.nbytes)) : std::nullopt;
}

} // namespace

std::optional<kernel_choice> choose(const reduction &how) {
    if (operator_name(how.op) == nullptr) {
        return std::nullopt;
    }
    if (how.op == OMPX_MINLOC || how.op == OMPX_MAXLOC) {
        return choose_pair(how);
    }
    if (how.type == OMPX_FLOAT_COMPLEX || how.type == OMPX_DOUBLE_COMPLEX) {
        return choose_complex(how.op, how.type == OMPX_DOUBLE_COMPLEX);
    }
    element const of = element_of(how.type);
    if (of.nbytes == 0) {
        return std::nullopt;
    }
    bool const is_integer = !of.without_sign.empty();
    switch (how.op) {
    case OMPX_BAND:
    case OMPX_BOR:
    case OMPX_BXOR:
        return is_integer ? std::optional(kernel_of(how.op, "u8", 1, of.nbytes)) : std::nullopt;
    case OMPX_SUM:
    case OMPX_PROD:
        if (how.type == OMPX_BOOL) {
            return std::nullopt;
        }
        [[fallthrough]];
    case OMPX_LAND:
    case OMPX_LOR:
        return kernel_of(how.op, is_integer ? of.without_sign : of.name, of.nbytes);
    case OMPX_AVG:
        return how.type == OMPX_BOOL ? std::nullopt
                                     : std::optional(kernel_of(how.op, of.name, of.nbytes));
    default:
        return kernel_of(how.op, of.name, of.nbytes);
    }
}

result<launch> prepare(const reduction &how, void *dst, std::span<const void *const> sources,
                       std::size_t count) {
    auto const by = choose(how);
    if (!by) {
        return error(OMPX_ERR_UNSUPPORTED, "there is no kernel for this type and operator");
    }
    if (dst == nullptr || sources.empty() || sources.size() > queue::max_sources) {
        return error(OMPX_ERR_ARG, fmt::format("a reduction of {} arrays: 1 to {} are possible",
                                               sources.size(), queue::max_sources));
    }
    launch made{.kernel = by->name, .arguments = {}};
    reduction_arguments &all = made.arguments;
    all.count = count * by->per_element;
    all.divisor = how.divisor;
    all.num_sources = sources.size();
    all.dst = reinterpret_cast<std::uintptr_t>(dst);
    auto bits = all.dst;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        all.sources[i] = reinterpret_cast<std::uintptr_t>(sources[i]);
        bits |= all.sources[i];
    }
    all.num_vectors = bits % vector_bytes == 0 ? all.count * by->element_bytes / vector_bytes : 0;
    std::size_t const steps = std::max<std::size_t>(
        all.num_vectors, all.count - all.num_vectors * (vector_bytes / by->element_bytes));
    made.num_blocks = static_cast<unsigned>(std::clamp<std::size_t>(
        (steps + launch::block_threads - 1) / launch::block_threads, 1, launch::max_blocks));
    return made;
}

result<update_arguments> prepare(std::span<const word_update> all, std::uint64_t *old_values) {
    static_assert(queue::max_updates == update_arguments::max_updates);
    if (all.size() > queue::max_updates) {
        return error(OMPX_ERR_ARG, fmt::format("{} atomic operations in a call", all.size()));
    }
    update_arguments made;
    made.count = all.size();
    made.old_values = reinterpret_cast<std::uintptr_t>(old_values);
    for (std::size_t i = 0; i < all.size(); ++i) {
        word_update const &each = all[i];
        bool const swaps = each.what == word_update::kind::compare_swap;
        made.items[i] = {each.address, each.operand, each.desired, each.type,
                         swaps ? compare_swap_op : each.op};
    }
    return made;
}

} // namespace diomp::device::kernels
