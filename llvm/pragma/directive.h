// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The contents of one `#pragma ompx`, and the tables of directives and operators.
#ifndef DIOMP_PRAGMA_DIRECTIVE_H
#define DIOMP_PRAGMA_DIRECTIVE_H

#include <clang/Basic/IdentifierTable.h>
#include <clang/Basic/SourceLocation.h>
#include <clang/Lex/Token.h>
#include <deque>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/StringRef.h>
#include <optional>
#include <string>
#include <vector>

namespace clang {
class CompilerInstance;
}

namespace diomp::pragma {

/// Maximum number of array dimensions that are removed to find the elements.
inline constexpr int max_dimensions = 6;

using tokens = std::vector<clang::Token>;

/// The buffer whose section determines the block size that the call gets.
enum class block { dst, src, per_member_of_src };

/// The buffers with blocks of different sizes, which clauses list.
enum class blocks_of { none, dst, src, both };

/// One row of the table of directives.
struct directive_kind {
    llvm::StringRef name;
    llvm::StringRef call; ///< without the _nb of the nonblocking form
    bool on_target;       ///< follows `target`, takes a list and all clauses
    bool has_operator;
    bool has_src; ///< dst and src; otherwise one variable, in place
    bool has_root;
    block size;
    blocks_of lists = blocks_of::none; ///< then `size` is not used

    bool has_lists() const { return lists != blocks_of::none; }
    bool dst_has_lists() const { return lists == blocks_of::dst || lists == blocks_of::both; }
    bool src_has_lists() const { return lists == blocks_of::src || lists == blocks_of::both; }
};

/// Finds the row of that name; null: none.
const directive_kind *find_directive(llvm::StringRef name, bool on_target);
/// "device_bcast, device_reduce, ...", for messages.
std::string directive_names(bool on_target);

/// A row of the table of operators.
struct operator_kind {
    llvm::StringRef spelling;
    llvm::StringRef value; ///< an enumerator of diomp.h
    bool on_bool;
    bool on_floating;
    bool on_complex;
};

const operator_kind *find_operator(llvm::StringRef spelling);
std::string operator_names();

/// a[low:length]. Brackets without a colon are not a section.
struct section {
    tokens low;    ///< empty: 0
    tokens length; ///< empty: up to the end of the array
    clang::SourceLocation colon;
};

/// A buffer in the list.
struct item {
    tokens base; ///< tokens before the section's brackets, or all of them
    std::optional<section> array_section;
    std::string text; ///< as written, for messages

    clang::SourceLocation location() const { return base.front().getLocation(); }
};

/// The clauses with the positions of the blocks of a buffer, in elements.
struct block_clauses {
    tokens counts; ///< each empty if left out
    tokens displs; ///
};

struct directive {
    const directive_kind *kind = nullptr;
    clang::SourceLocation location; ///< of its name
    const operator_kind *op = nullptr;
    clang::SourceLocation op_location;
    item dst; ///< or the only variable
    item src;
    tokens group;  ///< each empty if left out
    tokens device; ///
    tokens root;   ///
    block_clauses dst_blocks;
    block_clauses src_blocks;
    bool nowait = false;
    std::vector<tokens> depends; ///< from the word `depend` to its closing parenthesis
};

/// The meaning of a variable in the generated code; the checks on the syntax tree use it to find
/// what they check.
enum class role { group, dst, src, low, length, list };

struct marked_variable {
    std::size_t directive;
    role meaning;
    const item *of; ///< for dst, src, low and length
    clang::SourceLocation
        location; ///< a precompiled header may contain another variable of this name
};

/// State of one translation unit, shared between the pragma handler and the checks.
struct unit_state {
    explicit unit_state(clang::CompilerInstance &instance) : compiler(instance) {}

    clang::CompilerInstance &compiler;
    std::deque<directive> directives; ///< a deque, because marked variables point to its items
    llvm::DenseMap<const clang::IdentifierInfo *, marked_variable> variables;
};

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_DIRECTIVE_H
