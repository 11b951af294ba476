// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the words of a pragma to a directive. Works on tokens: what a name means is not known here.
#ifndef DIOMP_PRAGMA_PARSER_H
#define DIOMP_PRAGMA_PARSER_H

#include "directive.h"

#include <clang/Lex/Preprocessor.h>

namespace diomp::pragma {

/// Reads the directive whose words, without `ompx`, are given; `end` is the place after the last.
/// None: it said why.
std::optional<directive> parse(clang::Preprocessor &preprocessor, clang::SourceLocation introducer,
                               const tokens &words, clang::SourceLocation end);

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_PARSER_H
