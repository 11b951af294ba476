// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds code from the plugin's text and the program's tokens.
#ifndef DIOMP_PRAGMA_CODE_H
#define DIOMP_PRAGMA_CODE_H

#include "directive.h"

#include <clang/Lex/Preprocessor.h>

namespace diomp::pragma {

class code {
public:
    code(clang::Preprocessor &preprocessor, clang::SourceLocation where)
        : preprocessor_(preprocessor), where_(where) {}

    /// Sets the source location of text that is added from here on.
    code &at(clang::SourceLocation where) {
        where_ = where;
        return *this;
    }
    /// Adds identifiers, numbers and punctuation.
    code &add(llvm::StringRef text);
    code &add(const tokens &words) {
        made_.insert(made_.end(), words.begin(), words.end());
        return *this;
    }
    /// Add the tokens with which an OpenMP pragma begins and ends after preprocessing.
    code &begin_openmp() {
        in_openmp_ = true;
        return annotation(clang::tok::annot_pragma_openmp);
    }
    code &end_openmp() {
        in_openmp_ = false;
        return annotation(clang::tok::annot_pragma_openmp_end);
    }

    const tokens &made() const { return made_; }

private:
    code &annotation(clang::tok::TokenKind kind);

    clang::Preprocessor &preprocessor_;
    clang::SourceLocation where_;
    tokens made_;
    bool in_openmp_ = false;
};

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_CODE_H
