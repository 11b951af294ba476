// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "code.h"

#include <clang/Lex/Lexer.h>
#include <string>

namespace diomp::pragma {

code &code::add(llvm::StringRef text) {
    std::string const copy = text.str(); // the lexer wants a final 0
    clang::Lexer lexer(clang::SourceLocation(), preprocessor_.getLangOpts(), copy.data(),
                       copy.data(), copy.data() + copy.size());
    clang::Token token;
    for (lexer.LexFromRawLexer(token); token.isNot(clang::tok::eof); lexer.LexFromRawLexer(token)) {
        if (token.is(clang::tok::raw_identifier)) {
            preprocessor_.LookUpIdentifierInfo(token);
        } else if (token.is(clang::tok::numeric_constant)) {
            // A number's digits are read when it is parsed, and the copy is gone by then.
            static constexpr char digits[] = "0123456789";
            token.setLiteralData(digits + (*token.getLiteralData() - '0'));
        }
        token.clearFlag(clang::Token::StartOfLine);
        token.setLocation(where_);
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
