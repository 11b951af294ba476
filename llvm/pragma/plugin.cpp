// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plugin that clang loads with -fplugin=: reads `#pragma ompx` and enters code in its place.
// The generated code is valid wherever the directive's tokens are, so that the checks on the
// finished syntax tree can report errors in terms of the directive.
#include "check.h"
#include "directive.h"
#include "expand.h"
#include "messages.h"
#include "parser.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>
#include <clang/Sema/Sema.h>
#include <memory>
#include <string>
#include <utility>

namespace diomp::pragma {
namespace {

using clang::Preprocessor;
using clang::Token;

/// State of the translation unit that is being parsed; null during preprocessing only. A global,
/// because a handler only gets its preprocessor, and the compiler creates handlers before
/// consumers.
unit_state *parsed = nullptr;

class handler : public clang::PragmaHandler {
public:
    handler() : PragmaHandler("ompx") {}
    void HandlePragma(Preprocessor &preprocessor, clang::PragmaIntroducer introducer,
                      Token &first) override;

private:
    static void forward(Preprocessor &preprocessor, clang::PragmaIntroducer introducer,
                        const tokens &words);
    static bool is_allowed_here(const directive &read);
    static void ignore_without_openmp(directive &read);
    static void enter(Preprocessor &preprocessor, const tokens &made) {
        auto copy = std::make_unique<Token[]>(made.size());
        std::copy(made.begin(), made.end(), copy.get());
        // Macros were expanded when the pragma was read.
        preprocessor.EnterTokenStream(std::move(copy), static_cast<unsigned>(made.size()), true,
                                      false);
    }
};

/// Keeps the directive in preprocessed text, with its macros expanded, for the compiler that reads
/// it later. As a line of its own: clang 22 and newer do not read _Pragma in preprocessed text.
void handler::forward(Preprocessor &preprocessor, clang::PragmaIntroducer introducer,
                      const tokens &words) {
    std::string text = "#pragma ompx";
    for (const auto &word : words) {
        text += ' ' + preprocessor.getSpelling(word);
    }
    tokens lines;
    // The compiler counts the newlines in tokens of the kind `unknown`, and where a token that
    // starts a line is not on the line that it counts, it prints newlines or a line marker.
    auto const add = [&](llvm::StringRef spelling, bool starts_line) {
        Token token;
        token.startToken();
        token.setKind(clang::tok::unknown);
        token.setFlagValue(Token::StartOfLine, starts_line);
        preprocessor.CreateString(spelling, token, introducer.Loc, introducer.Loc);
        lines.push_back(token);
    };
    // There may be code before an operator on its line.
    if (introducer.Kind != clang::PIK_HashPragma) {
        add("\n", false);
    }
    add(text + '\n', true);
    // Not printed, but what is next starts a line.
    Token next;
    next.startToken();
    next.setKind(clang::tok::annot_pragma_unused);
    next.setLocation(introducer.Loc);
    next.setAnnotationEndLoc(introducer.Loc);
    next.setFlag(Token::StartOfLine);
    lines.push_back(next);
    enter(preprocessor, lines);
}

/// Returns false and reports an error if the generated code cannot compile.
bool handler::is_allowed_here(const directive &read) {
    auto &sema = parsed->compiler.getSema();
    auto &diagnostics = parsed->compiler.getDiagnostics();
    auto const known = [&](llvm::StringRef name) {
        auto &identifier = parsed->compiler.getPreprocessor().getIdentifierTable().get(name);
        return sema.LookupSingleName(sema.TUScope, clang::DeclarationName(&identifier),
                                     read.location, clang::Sema::LookupOrdinaryName) != nullptr;
    };
    if (!known(read.kind->call)) {
        diagnostics.Report(read.location,
                           diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error,
                                                       "'%0' needs #include <diomp.h> before it"))
            << read.kind->name;
        return false;
    }
    // Bodies of templates may be read at file scope and parsed later.
    if (sema.CurContext->isFileContext() &&
        !parsed->compiler.getLangOpts().DelayedTemplateParsing) {
        diagnostics.Report(read.location,
                           diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error,
                                                       "'%0' stands outside of any function"))
            << read.kind->name;
        return false;
    }
    return true;
}

void handler::ignore_without_openmp(directive &read) {
    const auto &options = parsed->compiler.getLangOpts();
    // Detach events need OpenMP 5.0.
    bool const has_tasks = options.OpenMP >= 50 && !options.OpenMPSimd;
    if (has_tasks || (!read.nowait && read.depends.empty())) {
        return;
    }
    auto &diagnostics = parsed->compiler.getDiagnostics();
    diagnostics.Report(
        read.location,
        diagnostics.getCustomDiagID(warning_level(diagnostics, options),
                                    "'nowait' and 'depend' are ignored without OpenMP (-fopenmp); "
                                    "'%0' blocks"))
        << read.kind->name;
    read.nowait = false;
    read.depends.clear();
}

void handler::HandlePragma(Preprocessor &preprocessor, clang::PragmaIntroducer introducer,
                           Token &first) {
    tokens words;
    Token word;
    for (preprocessor.Lex(word); word.isNot(clang::tok::eod) && word.isNot(clang::tok::eof);
         preprocessor.Lex(word)) {
        words.push_back(word);
    }
    if (parsed == nullptr || &parsed->compiler.getPreprocessor() != &preprocessor) {
        forward(preprocessor, introducer, words);
        return;
    }
    auto read = parse(preprocessor, first.getLocation(), words, word.getLocation());
    if (!read || !is_allowed_here(*read)) {
        return;
    }
    ignore_without_openmp(*read);
    parsed->directives.push_back(std::move(*read));
    enter(preprocessor, expand(*parsed, parsed->directives.size() - 1));
}

class consumer : public clang::ASTConsumer {
public:
    explicit consumer(clang::CompilerInstance &compiler)
        : state_(compiler), outer_(std::exchange(parsed, &state_)) {}
    consumer(const consumer &) = delete;
    consumer &operator=(const consumer &) = delete;
    // A module may be compiled in the middle of another unit.
    ~consumer() override { parsed = outer_; }

    void HandleTranslationUnit(clang::ASTContext &context) override {
        // Device passes read the same source again after the host's pass.
        if (!state_.directives.empty() && !context.getLangOpts().OpenMPIsTargetDevice) {
            check(state_, context);
        }
    }

private:
    unit_state state_;
    unit_state *outer_;
};

class action : public clang::PluginASTAction {
protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &compiler,
                                                          llvm::StringRef) override {
        return std::make_unique<consumer>(compiler);
    }
    bool ParseArgs(const clang::CompilerInstance &, const std::vector<std::string> &) override {
        return true;
    }
    // Errors must be reported before code generation.
    ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<action> added_action("diomp-pragma", "reads #pragma ompx");
const clang::PragmaHandlerRegistry::Add<handler> added_handler("ompx", "DiOMP's directives");

} // namespace
} // namespace diomp::pragma
