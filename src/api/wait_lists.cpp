// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for and tests of several local words.
#include "api/internal/words.h"
#include "diomp/wait.h"
#include "messaging/engine.h"

using namespace diomp;
using api::g_fast;

namespace {

/// How many of the words must fulfil the comparison, and where the call stores which do.
enum class quantifier { any, some, all };

/// Where a wait or test of several words stores what it finds.
struct word_results {
    std::size_t *indices = nullptr;   ///< not for all; for any, one element
    std::size_t *num_found = nullptr; ///< for some
};

/// The words of a call, and what they are compared with.
struct compared_words {
    ompx_type_t type;
    const void *variables;
    std::size_t count;
    const int *skip;
    ompx_cmp_t cmp;
    const void *values;
    std::size_t num_values;
};

/// A wait for or a test of several words.
struct word_call : compared_words {
    const char *function;
    const void *site;
    bool blocks;
    quantifier wanted;
    word_results to;
};

template <typename T>
api::word_list<T> words_of(const word_call &given) {
    return {static_cast<const T *>(given.variables), given.count,         given.skip, given.cmp,
            static_cast<const T *>(given.values),    given.num_values > 1};
}

/// Stores all elements that fulfil the comparison; true if there are any.
template <typename T>
bool collect_found(const api::word_list<T> &words, const word_call &given) {
    std::size_t found = 0;
    for (std::size_t i = words.find(0); i < words.count; i = words.find(i + 1)) {
        given.to.indices[found++] = i;
    }
    *given.to.num_found = found;
    return found > 0;
}

/// Reads the words once and stores what the call returns; true if it is over. `open`: for all, the
/// first element that has not fulfilled the comparison yet; 0 in the first call.
template <typename T>
[[gnu::always_inline]] inline bool read_words(const api::word_list<T> &words,
                                              const word_call &given, std::size_t &open) {
    switch (given.wanted) {
    case quantifier::any: {
        std::size_t const found = words.find(0);
        *given.to.indices = found < words.count ? found : OMPX_NO_INDEX;
        return found < words.count;
    }
    case quantifier::some:
        return collect_found(words, given);
    case quantifier::all:
        open = words.find(open, false);
        return open == words.count;
    }
    return false;
}

bool read_once(const word_call &given) {
    return api::with_integer(given.type, false, [&](auto of) {
        std::size_t open = 0;
        return read_words(words_of<decltype(of)>(given), given, open);
    });
}

template <typename T>
status wait_for_several(runtime::runtime &running, const word_call &given) {
    auto const words = words_of<T>(given);
    if (words.is_empty()) {
        std::size_t open = 0;
        static_cast<void>(read_words(words, given, open));
        return {};
    }
    std::size_t open = 0;
    auto const ready = [&] { return read_words(words, given, open); };
    auto const waiting = [&] {
        return given.wanted == quantifier::all
                   ? fmt::format("waiting for all of {} words at {} (element {} is {}, wanted: "
                                 "{} {})",
                                 given.count, given.variables, open,
                                 __atomic_load_n(&words.cells[open], __ATOMIC_RELAXED),
                                 api::sign_of(given.cmp), words.value_of(open))
                   : fmt::format("waiting for one of {} words at {} ({} {})", given.count,
                                 given.variables, api::sign_of(given.cmp), words.value_of(0));
    };
    return api::wait_for_words(running, ready, waiting);
}

/// Whether the arguments pass check_words(); without its messages.
[[gnu::always_inline]] inline bool are_plain(const word_call &given) {
    std::size_t const size = api::integer_bytes(given.type);
    bool const outputs = (given.wanted == quantifier::all || given.to.indices != nullptr) &&
                         (given.wanted != quantifier::some || given.to.num_found != nullptr);
    return size != 0 && given.variables != nullptr && given.values != nullptr && outputs &&
           api::is_comparison(given.cmp) && api::is_aligned(given.variables, size) &&
           given.count - 1 < api::max_elements(sizeof(std::uint64_t)) &&
           (given.num_values == 1 || given.num_values == given.count);
}

status check_words(const word_call &given) {
    if (given.count > 0) {
        DIOMP_TRY(api::check_pointer(given.variables, "variables"));
        DIOMP_TRY(api::check_pointer(given.values, "values"));
    }
    if (given.wanted == quantifier::any || (given.wanted == quantifier::some && given.count > 0)) {
        DIOMP_TRY(api::check_pointer(given.to.indices,
                                     given.wanted == quantifier::any ? "index" : "indices"));
    }
    if (given.wanted == quantifier::some) {
        DIOMP_TRY(api::check_pointer(given.to.num_found, "num_found"));
    }
    if (given.count > 0 && given.num_values != 1 && given.num_values != given.count) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} values for {} words", given.num_values, given.count),
                     "pass one value for all words, or one for each");
    }
    DIOMP_TRY(api::check_word(given.variables, given.type, given.cmp));
    return api::check_count(given.count, api::integer_bytes(given.type));
}

[[gnu::noinline]] int words_slow_path(const word_call &given) noexcept {
    bool is_over = given.blocks;
    int const outcome = api::call(
        given.function, given.site,
        [&] {
            return fmt::format("{}, count={}",
                               api::describe_word(given.variables, given.type, given.cmp),
                               given.count);
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(check_words(given));
            if (given.blocks) {
                return api::with_integer(given.type, status(), [&](auto of) {
                    return wait_for_several<decltype(of)>(running, given);
                });
            }
            is_over = read_once(given);
            if (!is_over) {
                running.connection().engine().poll();
                is_over = read_once(given);
            }
            return {};
        });
    return outcome == OMPX_SUCCESS && !given.blocks ? static_cast<int>(is_over) : outcome;
}

/// Waits return a status, tests 1, 0 or a negative status. Where only stores of this node's ranks
/// change the words, a read of the words is all that a test does, and all that a wait does if its
/// condition holds already.
[[gnu::always_inline]] inline int run(const word_call &given) {
    if (g_fast.fence_orders_only.load(std::memory_order_relaxed) && are_plain(given)) [[likely]] {
        bool const is_over = read_once(given);
        if (!given.blocks) {
            return static_cast<int>(is_over);
        }
        if (is_over) {
            return OMPX_SUCCESS;
        }
    }
    return words_slow_path(given);
}

[[gnu::always_inline]] inline int wait_for(const char *function, const void *site,
                                           quantifier wanted, const compared_words &words,
                                           word_results to = {}) {
    return run({words, function, site, true, wanted, to});
}

[[gnu::always_inline]] inline int test(const char *function, const void *site, quantifier wanted,
                                       const compared_words &words, word_results to = {}) {
    return run({words, function, site, false, wanted, to});
}

} // namespace

extern "C" {

int ompx_signal_wait_any(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                         uint64_t value, size_t *index) noexcept {
    return wait_for("ompx_signal_wait_any", DIOMP_SITE, quantifier::any,
                    {OMPX_UINT64, signals, count, skip, cmp, &value, 1}, {index});
}

int ompx_signal_wait_some(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                          uint64_t value, size_t *indices, size_t *num_found) noexcept {
    return wait_for("ompx_signal_wait_some", DIOMP_SITE, quantifier::some,
                    {OMPX_UINT64, signals, count, skip, cmp, &value, 1}, {indices, num_found});
}

int ompx_signal_wait_all(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                         uint64_t value) noexcept {
    return wait_for("ompx_signal_wait_all", DIOMP_SITE, quantifier::all,
                    {OMPX_UINT64, signals, count, skip, cmp, &value, 1});
}

int ompx_signal_test_any(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                         uint64_t value, size_t *index) noexcept {
    return test("ompx_signal_test_any", DIOMP_SITE, quantifier::any,
                {OMPX_UINT64, signals, count, skip, cmp, &value, 1}, {index});
}

int ompx_signal_test_some(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                          uint64_t value, size_t *indices, size_t *num_found) noexcept {
    return test("ompx_signal_test_some", DIOMP_SITE, quantifier::some,
                {OMPX_UINT64, signals, count, skip, cmp, &value, 1}, {indices, num_found});
}

int ompx_signal_test_all(const uint64_t *signals, size_t count, const int *skip, ompx_cmp_t cmp,
                         uint64_t value) noexcept {
    return test("ompx_signal_test_all", DIOMP_SITE, quantifier::all,
                {OMPX_UINT64, signals, count, skip, cmp, &value, 1});
}

int ompx_wait_until_any(const void *variables, ompx_type_t type, size_t count, const int *skip,
                        ompx_cmp_t cmp, const void *values, size_t num_values,
                        size_t *index) noexcept {
    return wait_for("ompx_wait_until_any", DIOMP_SITE, quantifier::any,
                    {type, variables, count, skip, cmp, values, num_values}, {index});
}

int ompx_wait_until_some(const void *variables, ompx_type_t type, size_t count, const int *skip,
                         ompx_cmp_t cmp, const void *values, size_t num_values, size_t *indices,
                         size_t *num_found) noexcept {
    return wait_for("ompx_wait_until_some", DIOMP_SITE, quantifier::some,
                    {type, variables, count, skip, cmp, values, num_values}, {indices, num_found});
}

int ompx_wait_until_all(const void *variables, ompx_type_t type, size_t count, const int *skip,
                        ompx_cmp_t cmp, const void *values, size_t num_values) noexcept {
    return wait_for("ompx_wait_until_all", DIOMP_SITE, quantifier::all,
                    {type, variables, count, skip, cmp, values, num_values});
}

int ompx_test_until_any(const void *variables, ompx_type_t type, size_t count, const int *skip,
                        ompx_cmp_t cmp, const void *values, size_t num_values,
                        size_t *index) noexcept {
    return test("ompx_test_until_any", DIOMP_SITE, quantifier::any,
                {type, variables, count, skip, cmp, values, num_values}, {index});
}

int ompx_test_until_some(const void *variables, ompx_type_t type, size_t count, const int *skip,
                         ompx_cmp_t cmp, const void *values, size_t num_values, size_t *indices,
                         size_t *num_found) noexcept {
    return test("ompx_test_until_some", DIOMP_SITE, quantifier::some,
                {type, variables, count, skip, cmp, values, num_values}, {indices, num_found});
}

int ompx_test_until_all(const void *variables, ompx_type_t type, size_t count, const int *skip,
                        ompx_cmp_t cmp, const void *values, size_t num_values) noexcept {
    return test("ompx_test_until_all", DIOMP_SITE, quantifier::all,
                {type, variables, count, skip, cmp, values, num_values});
}

} // extern "C"
