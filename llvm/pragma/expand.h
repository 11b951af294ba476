// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a directive to the code that the compiler reads in its place.
#ifndef DIOMP_PRAGMA_EXPAND_H
#define DIOMP_PRAGMA_EXPAND_H

#include "directive.h"

namespace diomp::pragma {

/// One statement. The program's own words keep their places, ours take the place of what they are
/// about, so that the compiler's messages point at something that was written. Marks in `state`
/// the variables that the checks look for.
tokens expand(unit_state &state, std::size_t directive_number);

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_EXPAND_H
