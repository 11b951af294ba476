// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "code.h"

#include <clang/Lex/Lexer.h>
#include <string>

namespace diomp::pragma {

code &code::add(llvm::StringRef text) {
    std::string const copy = text.str(); // the lexer requires a final 0
    clang::Lexer lexer(clang::SourceLocation(), preprocessor_.getLangOpts(), copy.data(),
                       copy.data(), copy.data() + copy.size());
    clang::Token token;
    for (lexer.LexFromRawLexer(token); token.isNot(clang::tok::eof); lexer.LexFromRawLexer(token)) {
        auto const written = copy.substr(
            static_cast<std::size_t>(lexer.getBufferLocation() - copy.data()) - token.getLength(),
            token.getLength());
        if (token.is(clang::tok::raw_identifier)) {
            preprocessor_.LookUpIdentifierInfo(token);
        }
        token.setLocation(where_);
        // The compiler reads the digits of numbers and the words of OpenMP's directives from their
        // source location. They get a buffer of their own, which is shown at the directive's
        // location.
        if (in_openmp_ || token.is(clang::tok::numeric_constant)) {
            preprocessor_.CreateString(written, token, where_, where_);
        }
        token.clearFlag(clang::Token::StartOfLine);
        made_.push_back(token);
    }
    return *this;
}

code &code::annotation(clang::tok::TokenKind kind) {
    clang::Token token;
    token.startToken();
    token.setKind(kind);
    token.setLocation(where_);
    token.setAnnotationEndLoc(where_);
    token.setAnnotationValue(nullptr);
    made_.push_back(token);
    return *this;
}

} // namespace diomp::pragma
