// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that need types; for templates when they are instantiated.
#ifndef DIOMP_PRAGMA_CHECK_H
#define DIOMP_PRAGMA_CHECK_H

#include "directive.h"

namespace clang {
class ASTContext;
}

namespace diomp::pragma {

void check(const unit_state &state, clang::ASTContext &context);

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_CHECK_H
