// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/constant_names.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>

namespace diomp {
namespace {

constexpr std::array<const char *, 27> type_names{
    "no type",      "OMPX_INT8",        "OMPX_UINT8",           "OMPX_INT16",
    "OMPX_UINT16",  "OMPX_INT32",       "OMPX_UINT32",          "OMPX_INT64",
    "OMPX_UINT64",  "OMPX_FLOAT16",     "OMPX_BFLOAT16",        "OMPX_FLOAT",
    "OMPX_DOUBLE",  "OMPX_LONG_DOUBLE", "OMPX_FLOAT_COMPLEX",   "OMPX_DOUBLE_COMPLEX",
    "OMPX_BOOL",    "OMPX_FLOAT_INT",   "OMPX_DOUBLE_INT",      "OMPX_LONG_INT",
    "OMPX_2INT",    "OMPX_SHORT_INT",   "OMPX_LONG_DOUBLE_INT", "OMPX_2FLOAT",
    "OMPX_2DOUBLE", "OMPX_2INT64",      "OMPX_DOUBLE_INT64"};

constexpr std::array<const char *, 15> operator_names{
    "no operator",  "OMPX_SUM",   "OMPX_PROD", "OMPX_MIN",    "OMPX_MAX",
    "OMPX_BAND",    "OMPX_BOR",   "OMPX_BXOR", "OMPX_LAND",   "OMPX_LOR",
    "OMPX_REPLACE", "OMPX_NO_OP", "OMPX_AVG",  "OMPX_MINLOC", "OMPX_MAXLOC"};

constexpr std::array<const char *, 6> comparison_names{"EQ", "NE", "GT", "GE", "LT", "LE"};

} // namespace

std::string type_name(ompx_type_t type) {
    auto const index = static_cast<std::size_t>(type);
    if (index < type_names.size()) {
        return type_names[index];
    }
    int const size_bytes = type - OMPX_TYPE_OF_SIZE(0);
    return size_bytes > 0 && size_bytes < 0x10000 ? fmt::format("OMPX_TYPE_OF_SIZE({})", size_bytes)
                                                  : fmt::format("unknown type {}", type);
}

std::string operator_name(ompx_op_t op) {
    auto const index = static_cast<std::size_t>(op);
    return index < operator_names.size() ? operator_names[index]
                                         : fmt::format("unknown operator {}", op);
}

std::string comparison_name(ompx_cmp_t cmp) {
    auto const index = static_cast<std::size_t>(cmp);
    return index < comparison_names.size() ? fmt::format("OMPX_CMP_{}", comparison_names[index])
                                           : std::to_string(static_cast<int>(cmp));
}

} // namespace diomp
