// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cart/dims.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace diomp::cart {
namespace {

/// Divisors of n, ascending.
std::vector<int> divisors_of(int n) {
    std::vector<int> small;
    std::vector<int> large;
    for (int i = 1; i <= n / i; ++i) {
        if (n % i == 0) {
            small.push_back(i);
            if (i != n / i) {
                large.push_back(n / i);
            }
        }
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

/// Whether `count` factors of at most `limit` can multiply to n.
bool fits(int n, std::size_t count, int limit) {
    long long product = 1;
    for (std::size_t i = 0; i < count && product < n; ++i) {
        product *= limit;
    }
    return product >= n;
}

/// Appends factors in descending order, the first as small as possible.
bool append_factors(int n, std::size_t count, int limit, std::vector<int> &factors) {
    if (count == 0) {
        return n == 1;
    }
    for (int const factor : divisors_of(n)) {
        if (factor > limit) {
            return false;
        }
        if (!fits(n, count, factor)) {
            continue;
        }
        factors.push_back(factor);
        if (append_factors(n / factor, count - 1, factor, factors)) {
            return true;
        }
        factors.pop_back();
    }
    return false;
}

/// Tries factors of n for the dimensions from `at` on; keeps the choice with the smallest largest
/// factor in `best`.
void search_block(int n, std::span<const int> dims, std::vector<int> &chosen,
                  std::optional<std::vector<int>> &best) {
    std::size_t const at = chosen.size();
    if (at == dims.size()) {
        if (n == 1 &&
            (!best || *std::ranges::max_element(chosen) < *std::ranges::max_element(*best))) {
            best = chosen;
        }
        return;
    }
    for (int const factor : divisors_of(n)) {
        if (dims[at] % factor == 0) {
            chosen.push_back(factor);
            search_block(n / factor, dims, chosen, best);
            chosen.pop_back();
        }
    }
}

} // namespace

std::vector<int> balanced_factors(int n, std::size_t count) {
    std::vector<int> factors;
    append_factors(n, count, n, factors);
    return factors;
}

status choose_dims(int num_ranks, std::span<int> dims) {
    if (num_ranks < 1) {
        return error(OMPX_ERR_ARG, fmt::format("a grid of {} ranks", num_ranks),
                     "pass a positive number of ranks");
    }
    constexpr long long max_ranks = std::numeric_limits<int>::max();
    long long given = 1;
    for (int const each : dims) {
        if (each < 0) {
            return error(OMPX_ERR_ARG, fmt::format("the extent {} is negative", each),
                         "pass 0 for extents to be chosen");
        }
        // A product beyond all numbers of ranks stays there.
        given = std::min(each == 0 ? given : given * each, max_ranks + 1);
    }
    auto const num_free = static_cast<std::size_t>(std::ranges::count(dims, 0));
    if (num_ranks % given != 0 || (num_free == 0 && given != num_ranks)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} ranks are no multiple of the given extents, whose product is "
                                 "{}",
                                 num_ranks, given),
                     "change an extent, or pass 0 for it");
    }
    if (num_free > 0) {
        auto const factors = balanced_factors(num_ranks / static_cast<int>(given), num_free);
        auto next = factors.begin();
        for (int &each : dims) {
            each = each == 0 ? *next++ : each;
        }
    }
    return {};
}

std::optional<std::vector<int>> node_block(int node_size, std::span<const int> dims) {
    std::vector<int> chosen;
    std::optional<std::vector<int>> best;
    search_block(node_size, dims, chosen, best);
    return best;
}

} // namespace diomp::cart
