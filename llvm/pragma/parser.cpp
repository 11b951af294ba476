// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "parser.h"

#include "messages.h"

#include <algorithm>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticParse.h>

namespace diomp::pragma {
namespace {

using clang::SourceLocation;
using clang::Token;
using words_of = llvm::ArrayRef<Token>;

bool opens(const Token &token) {
    return token.isOneOf(clang::tok::l_paren, clang::tok::l_square, clang::tok::l_brace);
}
bool closes(const Token &token) {
    return token.isOneOf(clang::tok::r_paren, clang::tok::r_square, clang::tok::r_brace);
}

/// Index of the first token of that kind in `words` outside of brackets; words.size() if none. A
/// colon that belongs to ?: does not count.
std::size_t find_outside(words_of words, clang::tok::TokenKind kind) {
    int depth = 0;
    int open_conditionals = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (closes(words[i])) {
            --depth;
        }
        if (depth == 0 && words[i].is(clang::tok::colon) && open_conditionals > 0) {
            --open_conditionals;
        } else if (depth == 0 && words[i].is(kind)) {
            return i;
        }
        if (depth == 0 && words[i].is(clang::tok::question)) {
            ++open_conditionals;
        }
        if (opens(words[i])) {
            ++depth;
        }
    }
    return words.size();
}

class parser {
public:
    parser(clang::Preprocessor &preprocessor, words_of words, SourceLocation end)
        : preprocessor_(preprocessor), words_(words), end_(end) {}

    std::optional<directive> run(SourceLocation introducer);

private:
    template <unsigned N>
    clang::DiagnosticBuilder error(SourceLocation where, const char (&text)[N]) {
        auto &diagnostics = preprocessor_.getDiagnostics();
        return diagnostics.Report(
            where, diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, text));
    }
    void warn_unknown(SourceLocation where, llvm::StringRef before, llvm::StringRef known);

    bool at_end() const { return next_ == words_.size(); }
    SourceLocation here() const { return at_end() ? end_ : words_[next_].getLocation(); }
    llvm::StringRef word_here() const;
    std::string spelling(words_of words) const;

    const directive_kind *read_name(SourceLocation introducer);
    std::optional<words_of> read_parenthesised(llvm::StringRef after);
    bool read_list(words_of list, SourceLocation close);
    bool read_operator(words_of &list);
    bool read_item(words_of words, item &into);
    bool check_brackets(words_of words);
    bool read_clauses();
    bool read_clause(llvm::StringRef name);
    bool read_value(llvm::StringRef name, tokens &into);
    std::string clause_names() const;
    tokens *list_clause(llvm::StringRef name);
    bool check_lists();

    clang::Preprocessor &preprocessor_;
    words_of words_;
    SourceLocation end_;
    std::size_t next_ = 0;
    directive made_;
};

llvm::StringRef parser::word_here() const {
    if (at_end() || words_[next_].getIdentifierInfo() == nullptr) {
        return "";
    }
    return words_[next_].getIdentifierInfo()->getName();
}

std::string parser::spelling(words_of words) const {
    std::string text;
    for (const auto &word : words) {
        text += !text.empty() && word.hasLeadingSpace() ? " " : "";
        text += preprocessor_.getSpelling(word);
    }
    return text;
}

// The compiler's own warning about unknown pragmas needs -Wall. With the plugin loaded, an unknown
// name is certainly a mistake.
void parser::warn_unknown(SourceLocation where, llvm::StringRef before, llvm::StringRef known) {
    const auto &options = preprocessor_.getDiagnostics().getDiagnosticOptions().Warnings;
    bool const unwanted = std::ranges::find(options, "no-unknown-pragmas") != options.end();
    auto &diagnostics = preprocessor_.getDiagnostics();
    auto const level = warning_level(diagnostics, preprocessor_.getLangOpts());
    if (unwanted) {
        return;
    }
    auto const id =
        diagnostics.getCustomDiagID(level, "unknown pragma ignored: after '%0' comes %1");
    diagnostics.Report(where, id) << before << known;
}

const directive_kind *parser::read_name(SourceLocation introducer) {
    bool const on_target = word_here() == "target";
    SourceLocation const outer = at_end() ? introducer : here();
    if (on_target) {
        ++next_;
    }
    const auto *const kind = find_directive(word_here(), on_target);
    if (kind == nullptr && on_target) {
        warn_unknown(at_end() ? outer : here(), "ompx target", directive_names(true));
    } else if (kind == nullptr) {
        warn_unknown(outer, "ompx", directive_names(false) + ", target");
    } else {
        made_.location = here();
        ++next_;
    }
    return kind;
}

/// Reads the words between '(' and its ')'.
std::optional<words_of> parser::read_parenthesised(llvm::StringRef after) {
    if (at_end() || words_[next_].isNot(clang::tok::l_paren)) {
        error(here(), "expected '(' after '%0'") << after;
        return std::nullopt;
    }
    auto const open = words_[next_++].getLocation();
    auto const first = next_;
    int depth = 0;
    for (; !at_end(); ++next_) {
        if (depth == 0 && words_[next_].is(clang::tok::r_paren)) {
            return words_.slice(first, next_++ - first);
        }
        depth += opens(words_[next_]) ? 1 : closes(words_[next_]) ? -1 : 0;
    }
    error(end_, "expected ')'");
    auto &diagnostics = preprocessor_.getDiagnostics();
    diagnostics.Report(
        open, diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note, "to match this '('"));
    return std::nullopt;
}

/// Removes `op :` from the front of the list if the directive has an operator.
bool parser::read_operator(words_of &list) {
    bool const colon_second = list.size() > 1 && list[1].is(clang::tok::colon);
    auto const first = list.empty() ? here() : list.front().getLocation();
    auto const text = list.empty() ? "" : preprocessor_.getSpelling(list.front());
    if (!made_.kind->has_operator) {
        if (colon_second && find_operator(text) != nullptr) {
            error(first, "'%0' takes no operator") << made_.kind->name;
            return false;
        }
        return true;
    }
    if (!colon_second) {
        error(first, "expected an operator and ':' in front of the list, as in (+ : x); "
                     "operators are %0")
            << operator_names();
        return false;
    }
    made_.op = find_operator(text);
    made_.op_location = first;
    if (made_.op == nullptr) {
        error(first, "unknown operator '%0'; operators are %1") << text << operator_names();
        return false;
    }
    list = list.drop_front(2);
    return true;
}

/// Rejects unbalanced brackets: they would end brackets of the generated code, and the compiler's
/// message would refer to code that is not in the source.
bool parser::check_brackets(words_of words) {
    std::vector<clang::tok::TokenKind> open;
    for (const auto &word : words) {
        if (opens(word)) {
            open.push_back(word.is(clang::tok::l_paren)    ? clang::tok::r_paren
                           : word.is(clang::tok::l_square) ? clang::tok::r_square
                                                           : clang::tok::r_brace);
        } else if (closes(word)) {
            if (open.empty() || open.back() != word.getKind()) {
                error(word.getLocation(), "'%0' closes nothing here") << spelling(word);
                return false;
            }
            open.pop_back();
        } else if (word.is(clang::tok::semi) && open.empty()) {
            error(word.getLocation(), "expected an expression");
            return false;
        }
    }
    return true;
}

bool parser::read_item(words_of words, item &into) {
    into.text = spelling(words);
    into.base.assign(words.begin(), words.end());
    int depth = 0;
    std::size_t open = words.size();
    for (std::size_t i = 0; i < words.size(); ++i) {
        depth -= closes(words[i]) ? 1 : 0;
        if (depth == 0 && words[i].is(clang::tok::l_square)) {
            if (open != words.size() && into.array_section) {
                error(into.array_section->colon, "only the last dimension may have a section");
                return false;
            }
            open = i;
        } else if (depth == 0 && words[i].is(clang::tok::r_square) && open != words.size()) {
            auto const inner = words.slice(open + 1, i - open - 1);
            auto const colon = find_outside(inner, clang::tok::colon);
            if (colon != inner.size()) {
                into.array_section = section{{inner.begin(), inner.begin() + colon},
                                             {inner.begin() + colon + 1, inner.end()},
                                             inner[colon].getLocation()};
                into.base.assign(words.begin(), words.begin() + open);
            }
        }
        depth += opens(words[i]) ? 1 : 0;
    }
    if (into.array_section && (words.back().isNot(clang::tok::r_square) || into.base.empty())) {
        error(into.array_section->colon, "an array section is expected at the end, as in a[0:n]");
        return false;
    }
    if (into.array_section && find_outside(into.array_section->length, clang::tok::colon) !=
                                  into.array_section->length.size()) {
        error(into.array_section->colon, "a section with a stride is not contiguous");
        return false;
    }
    return true;
}

bool parser::read_list(words_of list, SourceLocation close) {
    if (!read_operator(list)) {
        return false;
    }
    std::vector<words_of> elements;
    for (bool more = true; more;) {
        auto const comma = find_outside(list, clang::tok::comma);
        more = comma != list.size();
        elements.push_back(list.take_front(comma));
        if (elements.back().empty()) {
            error(more ? list[comma].getLocation() : close, "expected an expression");
            return false;
        }
        list = list.drop_front(more ? comma + 1 : comma);
    }
    std::size_t const buffers = made_.kind->has_src ? 2 : 1;
    if (elements.size() < buffers) {
        error(close, "'%0' needs a destination and a source") << made_.kind->name;
        return false;
    }
    if (elements.size() > buffers + 1) {
        error(elements[buffers + 1].front().getLocation(), "'%0' takes %select{a variable|a "
                                                           "destination, a source}1 and a group")
            << made_.kind->name << (made_.kind->has_src ? 1 : 0);
        return false;
    }
    for (auto const element : elements) {
        if (!check_brackets(element)) {
            return false;
        }
    }
    if (elements.size() > buffers) {
        made_.group.assign(elements.back().begin(), elements.back().end());
    }
    return read_item(elements[0], made_.dst) && (buffers == 1 || read_item(elements[1], made_.src));
}

std::string parser::clause_names() const {
    if (!made_.kind->on_target) {
        return "group";
    }
    std::string const lists = made_.kind->lists == blocks_of::both
                                  ? "dst_counts, dst_displs, src_counts, src_displs, "
                              : made_.kind->has_lists() ? "counts, displs, "
                                                        : "";
    return lists +
           (made_.kind->has_root ? "device, root, nowait, depend" : "device, nowait, depend");
}

/// The tokens of a clause about blocks; null: this directive has no such clause.
tokens *parser::list_clause(llvm::StringRef name) {
    if (!made_.kind->has_lists()) {
        return nullptr;
    }
    auto *blocks = made_.kind->dst_has_lists() ? &made_.dst_blocks : &made_.src_blocks;
    if (made_.kind->lists == blocks_of::both) {
        if (name.consume_front("src_")) {
            blocks = &made_.src_blocks;
        } else if (!name.consume_front("dst_")) {
            return nullptr;
        }
    }
    return name == "counts" ? &blocks->counts : name == "displs" ? &blocks->displs : nullptr;
}

bool parser::check_lists() {
    bool const both = made_.kind->lists == blocks_of::both;
    for (bool const is_dst : {true, false}) {
        if (!(is_dst ? made_.kind->dst_has_lists() : made_.kind->src_has_lists())) {
            continue;
        }
        if ((is_dst ? made_.dst_blocks : made_.src_blocks).counts.empty()) {
            error(made_.location, "'%0' needs the clause '%select{counts|dst_counts|src_counts}1'")
                << made_.kind->name
                << (!both    ? 0
                    : is_dst ? 1
                             : 2);
            return false;
        }
    }
    return true;
}

/// Reads name(expression).
bool parser::read_value(llvm::StringRef name, tokens &into) {
    if (!into.empty()) {
        error(here(), "'%0' comes twice") << name;
        return false;
    }
    ++next_;
    auto const value = read_parenthesised(name);
    if (!value) {
        return false;
    }
    if (value->empty()) {
        error(words_[next_ - 1].getLocation(), "expected an expression");
        return false;
    }
    into.assign(value->begin(), value->end());
    return check_brackets(*value);
}

bool parser::read_clause(llvm::StringRef name) {
    bool const on_target = made_.kind->on_target;
    if (on_target && name == "device") {
        return read_value(name, made_.device);
    }
    if (on_target && made_.kind->has_root && name == "root") {
        return read_value(name, made_.root);
    }
    if (auto *const list = on_target ? list_clause(name) : nullptr; list != nullptr) {
        return read_value(name, *list);
    }
    if (!on_target && name == "group") {
        return read_value(name, made_.group);
    }
    if (on_target && name == "nowait") {
        if (made_.nowait) {
            error(here(), "'%0' comes twice") << name;
            return false;
        }
        made_.nowait = true;
        ++next_;
        return true;
    }
    if (on_target && name == "depend") {
        auto const first = next_++;
        if (!read_parenthesised(name)) {
            return false;
        }
        made_.depends.emplace_back(words_.begin() + first, words_.begin() + next_);
        return true;
    }
    error(here(), "unknown clause '%0'; '%1' takes %2")
        << name << made_.kind->name << clause_names();
    return false;
}

bool parser::read_clauses() {
    while (!at_end()) {
        // OpenMP allows commas between clauses.
        if (words_[next_].is(clang::tok::comma) && next_ + 1 < words_.size()) {
            ++next_;
        }
        auto const name = word_here();
        if (name.empty()) {
            if (!preprocessor_.getLangOpts().OpenMPIsTargetDevice) {
                preprocessor_.Diag(here(), clang::diag::warn_pragma_extra_tokens_at_eol)
                    << (made_.kind->on_target ? "ompx target" : "ompx");
            }
            return true;
        }
        if (!read_clause(name)) {
            return false;
        }
    }
    return true;
}

std::optional<directive> parser::run(SourceLocation introducer) {
    made_.kind = read_name(introducer);
    if (made_.kind == nullptr) {
        return std::nullopt;
    }
    if (made_.kind->on_target) {
        auto const list = read_parenthesised(made_.kind->name);
        if (!list || !read_list(*list, words_[next_ - 1].getLocation())) {
            return std::nullopt;
        }
    }
    if (!read_clauses() || !check_lists()) {
        return std::nullopt;
    }
    return std::move(made_);
}

} // namespace

std::optional<directive> parse(clang::Preprocessor &preprocessor, SourceLocation introducer,
                               const tokens &words, SourceLocation end) {
    return parser(preprocessor, words, end).run(introducer);
}

} // namespace diomp::pragma
