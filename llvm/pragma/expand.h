// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generates the code that the compiler reads in place of a directive.
#ifndef DIOMP_PRAGMA_EXPAND_H
#define DIOMP_PRAGMA_EXPAND_H

#include "directive.h"

namespace diomp::pragma {

/// Generates one statement. The program's tokens keep their locations, and generated tokens get the
/// location of the tokens that they are based on, so that the compiler's messages point to source
/// text. Records in `state` the variables that the checks look for.
tokens expand(unit_state &state, std::size_t directive_number);

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_EXPAND_H
