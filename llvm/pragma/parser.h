// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parses the tokens of a pragma into a directive. Names are not resolved here.
#ifndef DIOMP_PRAGMA_PARSER_H
#define DIOMP_PRAGMA_PARSER_H

#include "directive.h"

#include <clang/Lex/Preprocessor.h>

namespace diomp::pragma {

/// Parses the directive from its tokens without `ompx`; `end` is the location after the last token.
/// nullopt: an error was reported.
std::optional<directive> parse(clang::Preprocessor &preprocessor, clang::SourceLocation introducer,
                               const tokens &words, clang::SourceLocation end);

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_PARSER_H
