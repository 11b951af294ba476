// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/placement.h"

#include "base/version.h"
#include "launch/launch.h"
#include "launch/long_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace diomp::launch {
namespace {

constexpr const char *node_ranks_key = "node";
constexpr const char *placement_key = "placement";
constexpr std::int32_t unknown = -1;

error malformed(std::string_view what, std::string_view text) {
    return {OMPX_ERR_SYSTEM, fmt::format("{} is malformed: \"{}\"", what, text.substr(0, 80)),
            "all ranks must run the same version of DiOMP"};
}

/// Format "0-3,8-8": ranks of a node are usually consecutive, so the text is short.
std::string list_text(std::span<const world_rank> ranks) {
    std::string text;
    for (std::size_t begin = 0; begin < ranks.size();) {
        std::size_t end = begin + 1;
        while (end < ranks.size() && ranks[end].value() == ranks[end - 1].value() + 1) {
            ++end;
        }
        text += fmt::format("{}{}-{}", text.empty() ? "" : ",", ranks[begin].value(),
                            ranks[end - 1].value());
        begin = end;
    }
    return text;
}

/// Numbers with one of `separators` between them; nullopt if the text has anything else.
std::optional<std::vector<int>> numbers_in(std::string_view text, std::string_view separators) {
    std::vector<int> found;
    const char *at = text.data();
    const char *const end = at + text.size();
    while (at != end) {
        int number = 0;
        auto const parsed = std::from_chars(at, end, number);
        if (parsed.ec != std::errc{} || number < 0) {
            return std::nullopt;
        }
        found.push_back(number);
        at = parsed.ptr;
        if (at == end) {
            break;
        }
        bool const is_separator = separators.find(*at) != std::string_view::npos;
        ++at;
        if (!is_separator || at == end) {
            return std::nullopt;
        }
    }
    return found;
}

/// The ranks of a list_text(); nullopt if it is malformed.
std::optional<std::vector<int>> ranks_in(std::string_view text, int num_ranks) {
    auto const ends = numbers_in(text, "-,");
    if (!ends || ends->empty() || ends->size() % 2 != 0) {
        return std::nullopt;
    }
    std::vector<int> ranks;
    for (std::size_t i = 0; i < ends->size(); i += 2) {
        int const first = (*ends)[i];
        int const last = (*ends)[i + 1];
        if (last < first || last >= num_ranks || (!ranks.empty() && first <= ranks.back())) {
            return std::nullopt;
        }
        for (int rank = first; rank <= last; ++rank) {
            ranks.push_back(rank);
        }
    }
    return ranks;
}

} // namespace

placement::placement(int num_ranks) {
    [[maybe_unused]] bool const added = append({num_ranks, 0, 0, num_ranks});
}

placement::seat placement::seat_in(const rank_range &part, int index) {
    return part.per_node == 0
               ? seat{part.node + index, part.local}
               : seat{part.node + index / part.per_node, part.local + index % part.per_node};
}

bool placement::append(const rank_range &part) {
    constexpr int limit = std::numeric_limits<int>::max() / 4;
    if (part.count < 1 || part.count > limit - num_ranks_ || part.node > limit ||
        part.local > limit || part.per_node > part.count) {
        return false;
    }
    ranges_.push_back(part);
    num_ranks_ += part.count;
    num_nodes_ = std::max(num_nodes_, seat_in(part, part.count - 1).node + 1);
    max_per_node_ = std::max(max_per_node_, part.local + std::max(part.per_node, 1));
    return true;
}

placement::rank_range placement::longest_range(std::span<const seat> from) {
    auto const matching = [&](const rank_range &part) {
        std::size_t length = 1;
        while (length < from.size() && from[length] == seat_in(part, static_cast<int>(length))) {
            ++length;
        }
        return static_cast<int>(length);
    };
    rank_range cyclic{0, from[0].node, from[0].local, 0};
    cyclic.count = matching(cyclic);
    rank_range block{0, from[0].node, from[0].local, static_cast<int>(from.size())};
    block.per_node = matching(block); // the ranks on the first node
    block.count = matching(block);
    return cyclic.count > block.count ? cyclic : block;
}

result<placement> placement::from_nodes(int num_ranks, std::span<const std::vector<int>> nodes) {
    std::vector<seat> seats(static_cast<std::size_t>(num_ranks), {unknown, unknown});
    std::int32_t node = 0;
    for (std::vector<int> const &ranks : nodes) {
        std::int32_t local = 0;
        for (int const rank : ranks) {
            seat &at = seats[static_cast<std::size_t>(rank)];
            if (at.node != unknown) {
                return error(OMPX_ERR_SYSTEM, fmt::format("rank {} is on two nodes", rank),
                             "report this start to the developers of DiOMP");
            }
            at = {node, local++};
        }
        ++node;
    }
    if (auto const lost = std::ranges::find(seats, seat{unknown, unknown}); lost != seats.end()) {
        return error(OMPX_ERR_SYSTEM, fmt::format("rank {} is on no node", lost - seats.begin()),
                     "report this start to the developers of DiOMP");
    }
    placement made;
    for (std::span<const seat> left(seats); !left.empty();) {
        rank_range const part = longest_range(left);
        [[maybe_unused]] bool const added = made.append(part);
        left = left.subspan(static_cast<std::size_t>(part.count));
    }
    return made;
}

std::string placement::to_text() const {
    std::string text;
    for (rank_range const &each : ranges_) {
        text += fmt::format("{}{}:{}:{}:{}", text.empty() ? "" : ";", each.count, each.node,
                            each.local, each.per_node);
    }
    return text;
}

result<placement> placement::from_text(int num_ranks, std::string_view text) {
    auto const numbers = numbers_in(text, ":;");
    constexpr std::size_t per_range = 4;
    placement made;
    bool valid = numbers && numbers->size() % per_range == 0;
    for (std::size_t i = 0; valid && i < numbers->size(); i += per_range) {
        std::vector<int> const &all = *numbers;
        valid = made.append({all[i], all[i + 1], all[i + 2], all[i + 3]}) &&
                made.num_ranks_ <= num_ranks;
    }
    if (!valid || made.num_ranks_ != num_ranks || made.num_nodes_ > num_ranks ||
        made.max_per_node_ > num_ranks) {
        return malformed("the placement of the ranks", text);
    }
    return made;
}

void placement::fill(std::span<std::int32_t> nodes, std::span<std::int32_t> locals) const {
    std::size_t rank = 0;
    for (rank_range const &part : ranges_) {
        for (int index = 0; index < part.count; ++index, ++rank) {
            seat const at = seat_in(part, index);
            nodes[rank] = at.node;
            locals[rank] = at.local;
        }
    }
}

status publish_node(launcher &launcher, std::string_view version) {
    job_info const &job = launcher.info();
    return job.local == local_rank{0}
               ? launcher.put(node_ranks_key,
                              fmt::format("{} {}", version, list_text(job.local_ranks)))
               : status{};
}

result<placement> collect_placement(launcher &launcher, std::string_view version) {
    int const num_ranks = launcher.info().size;
    std::vector<std::vector<int>> nodes;
    std::vector<bool> is_known(static_cast<std::size_t>(num_ranks), false);
    // The lowest rank that is on no node yet is the first one of its node, which has published it.
    for (int rank = 0; rank < num_ranks; ++rank) {
        if (is_known[static_cast<std::size_t>(rank)]) {
            continue;
        }
        auto text = launcher.get(world_rank{rank}, node_ranks_key);
        DIOMP_TRY(text);
        std::string_view const whole = text.value();
        std::string_view const theirs = whole.substr(0, whole.find(' '));
        if (theirs != version) {
            return version_mismatch(fmt::format("rank {}", rank), theirs, version);
        }
        auto ranks = ranks_in(whole.substr(std::min(whole.size(), theirs.size() + 1)), num_ranks);
        if (!ranks || ranks->front() != rank) {
            return malformed(fmt::format("the list of the ranks on rank {}'s node", rank), whole);
        }
        for (int const each : *ranks) {
            is_known[static_cast<std::size_t>(each)] = true;
        }
        nodes.push_back(*std::move(ranks));
    }
    return placement::from_nodes(num_ranks, nodes);
}

status publish_placement(launcher &launcher, const placement &of_job) {
    return publish_long_value(launcher, placement_key, of_job.to_text());
}

result<placement> fetch_placement(launcher &launcher) {
    auto text = fetch_long_value(launcher, placement_key);
    DIOMP_TRY(text);
    return placement::from_text(launcher.info().size, text.value());
}

} // namespace diomp::launch
