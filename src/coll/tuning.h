// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning files (DIOMP_COLL_TUNING): rules that choose the algorithms of collective calls, as the
// dynamic rules of Open MPI's coll_tuned and the variables *_TUNE of UCC do. docs/collectives.md
// has the format.
#pragma once

#include "base/result.h"
#include "coll/algorithm.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::coll {

/// Numbers from `first` to `last`, both included.
struct number_range {
    std::size_t first = 0;
    std::size_t last = SIZE_MAX;
    [[nodiscard]] bool contains(std::size_t number) const {
        return number >= first && number <= last;
    }
};

/// A line of a file.
struct tuning_rule {
    sync::operation what = sync::operation::barrier;
    network_level level = network_level::node;
    algorithm_choice choice;
    number_range members;
    number_range nodes;
    number_range bytes; ///< of a block, not more than the algorithm takes
};

/// A rule in the format of the file.
std::string to_text(const tuning_rule &rule);

/// The first rule that a call matches chooses its algorithm. Immutable, so any thread.
class tuning_rules final : public algorithm_source {
public:
    /// The rules of a text; `file` is its name for errors. OMPX_ERR_ARG with file, line, and what
    /// would be right.
    static result<tuning_rules> parse(std::string_view text, std::string_view file);
    /// Reads a file.
    static result<tuning_rules> read(const std::string &file);

    /// The rules in the format of the file, without comments, one in a line. parse() reads it.
    [[nodiscard]] std::string to_text() const;
    [[nodiscard]] const std::vector<tuning_rule> &rules() const { return rules_; }

    [[nodiscard]] std::optional<algorithm_choice> choose(const choice_facts &facts) const override;

private:
    std::vector<tuning_rule> rules_;
};

} // namespace diomp::coll
