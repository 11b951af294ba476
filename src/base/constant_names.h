// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The names of diomp.h's constants, for error messages.
#pragma once

#include "diomp/types.h"
#include "diomp/wait.h"

#include <string>

namespace diomp {

/// "OMPX_DOUBLE", "OMPX_TYPE_OF_SIZE(24)".
std::string type_name(ompx_type_t type);
/// "OMPX_SUM"; of the operators that the header names.
std::string operator_name(ompx_op_t op);
/// "OMPX_CMP_GE"; the number if it is no comparison.
std::string comparison_name(ompx_cmp_t cmp);

} // namespace diomp
