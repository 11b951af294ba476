// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one `#pragma ompx` says, and what the rest of the plugin knows about it.
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

/// How many dimensions of an array are taken off to find its elements.
inline constexpr int most_dimensions = 6;

using tokens = std::vector<clang::Token>;

/// Which buffer's section is the block that the call is told the size of.
enum class block { dst, src, part_of_src };

/// Which buffers have blocks of different sizes, which clauses list.
enum class blocks_of { none, dst, src, both };

/// One row of the table of directives.
struct directive_kind {
    llvm::StringRef name;
    llvm::StringRef call; ///< without the _nb of the form that does not block
    bool on_target;       ///< comes after `target`, takes a list and all clauses
    bool has_operator;
    bool has_src; ///< dst and src; otherwise one variable, in place
    bool has_root;
    block size;
    blocks_of lists = blocks_of::none; ///< then `size` is not used

    bool has_lists() const { return lists != blocks_of::none; }
    bool dst_has_lists() const { return lists == blocks_of::dst || lists == blocks_of::both; }
    bool src_has_lists() const { return lists == blocks_of::src || lists == blocks_of::both; }
};

/// The row of that name, or null.
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

/// a[low:length]. Without a colon in the last brackets there is none.
struct section {
    tokens low;    ///< empty: 0
    tokens length; ///< empty: up to the end of the array
    clang::SourceLocation colon;
};

/// A buffer of the list.
struct item {
    tokens base; ///< what stands before the section's brackets, or all of it
    std::optional<section> part;
    std::string text; ///< as it is written, for messages

    clang::SourceLocation location() const { return base.front().getLocation(); }
};

/// The clauses that say where the blocks of a buffer are, in its elements.
struct block_clauses {
    tokens counts; ///< each empty if left out
    tokens displs; ///
};

struct directive {
    const directive_kind *kind = nullptr;
    clang::SourceLocation location; ///< of its name
    const operator_kind *op = nullptr;
    clang::SourceLocation op_location;
    item dst; ///< or the one variable
    item src;
    tokens group;  ///< each empty if left out
    tokens device; ///
    tokens root;   ///
    block_clauses dst_blocks;
    block_clauses src_blocks;
    bool nowait = false;
    std::vector<tokens> depends; ///< from the word `depend` to its closing parenthesis
};

/// What a variable of the entered code holds; the checks on the syntax tree find their subjects by
/// it.
enum class role { group, dst, src, low, length, list };

struct marked_variable {
    std::size_t directive;
    role meaning;
    const item *of;                 ///< for dst, src, low and length
    clang::SourceLocation location; ///< a precompiled header may hold another of the same name
};

/// Of one translation unit, shared between the pragma handler and the checks.
struct unit_state {
    explicit unit_state(clang::CompilerInstance &instance) : compiler(instance) {}

    clang::CompilerInstance &compiler;
    std::deque<directive> directives; ///< a deque, since marked variables point to its items
    llvm::DenseMap<const clang::IdentifierInfo *, marked_variable> variables;
};

} // namespace diomp::pragma

#endif // DIOMP_PRAGMA_DIRECTIVE_H
