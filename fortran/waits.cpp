// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for and tests of several words or events. Indices count from 1, and 0 is none.
#include "array.h"
#include "caller.h"
#include "diomp/binding.hpp"

#include <cstdlib>

namespace diomp::fortran {
namespace {

/// The arguments of a call on several words.
class compared_words {
public:
    compared_words(const char *function, const CFI_cdesc_t *words, int cmp,
                   const CFI_cdesc_t *wanted, const CFI_cdesc_t *left_out)
        : words_(words), values_(wanted), skip_(left_out == nullptr ? words : left_out),
          has_skip_(left_out != nullptr), cmp_(static_cast<ompx_cmp_t>(cmp)),
          site_(function, words_, values_), status_(check()) {}

    /// Runs call(variables, type, count, skip, cmp, values, num_values), or returns the status of a
    /// failed check.
    template <typename Call>
    int run(Call &&call) const {
        return status_ == OMPX_SUCCESS
                   ? call(words_.data(), words_.type(), words_.count(),
                          has_skip_ ? static_cast<const int *>(skip_.data()) : nullptr, cmp_,
                          values_.data(), values_.count())
                   : status_;
    }
    /// run() for calls that store several indices: call(arguments of run(), indices, num_found).
    template <typename Call>
    int run_some(const array &indices, int *num_found, Call &&call) const;

private:
    [[nodiscard]] int check() const {
        int status = check_contiguous(site_, words_, "variables");
        if (status == OMPX_SUCCESS) {
            status = check_contiguous(site_, values_, "values");
        }
        if (status == OMPX_SUCCESS && has_skip_) {
            status = check_contiguous(site_, skip_, "skip");
        }
        if (status != OMPX_SUCCESS) {
            return status;
        }
        if (words_.type() == 0 || values_.type() != words_.type()) {
            return site_.fail(OMPX_ERR_ARG, "variables and values are not integers of one type",
                              "pass integers of one kind");
        }
        if (has_skip_ &&
            (skip_.count() != words_.count() || skip_.element_bytes() != sizeof(int))) {
            return site_.fail(OMPX_ERR_MISMATCH, "skip has no element for each variable",
                              "pass a logical array as long as that of the variables");
        }
        return OMPX_SUCCESS;
    }

    array words_;
    array values_;
    array skip_;
    bool has_skip_;
    ompx_cmp_t cmp_;
    call_site site_;
    int status_;
};

int from_one(std::size_t index) { return static_cast<int>(index) + 1; } // OMPX_NO_INDEX is -1

template <typename Call>
int compared_words::run_some(const array &indices, int *num_found, Call &&call) const {
    *num_found = 0;
    return run([&](auto... given) {
        if (indices.count() < words_.count()) {
            return site_.fail(OMPX_ERR_MISMATCH, "indices has no element for each variable",
                              "pass an array as long as that of the variables");
        }
        auto *const found =
            static_cast<std::size_t *>(std::malloc((words_.count() + 1) * sizeof(std::size_t)));
        if (found == nullptr) {
            return site_.fail(OMPX_ERR_NOMEM, "no memory for a list of indices",
                              "wait for fewer variables at a time");
        }
        std::size_t number = 0;
        int const status = call(given..., found, &number);
        for (std::size_t i = 0; status >= 0 && i < number; ++i) {
            static_cast<int *>(indices.data())[i] = from_one(found[i]);
        }
        *num_found = static_cast<int>(number);
        std::free(found);
        return status;
    });
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_wait_until_any(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted, int *index,
                                 CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_wait_until_any", words, cmp, wanted, left_out);
    std::size_t found = OMPX_NO_INDEX;
    int const status =
        all.run([&](auto... given) { return ompx_wait_until_any(given..., &found); });
    *index = from_one(found);
    return status;
}

int diomp_fortran_wait_until_some(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted,
                                  CFI_cdesc_t *indices, int *num_found, CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_wait_until_some", words, cmp, wanted, left_out);
    return all.run_some(array(indices), num_found, ompx_wait_until_some);
}

int diomp_fortran_wait_until_all(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted,
                                 CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_wait_until_all", words, cmp, wanted, left_out);
    return all.run([](auto... given) { return ompx_wait_until_all(given...); });
}

int diomp_fortran_test_until_any(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted, int *index,
                                 CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_test_until_any", words, cmp, wanted, left_out);
    std::size_t found = OMPX_NO_INDEX;
    int const status =
        all.run([&](auto... given) { return ompx_test_until_any(given..., &found); });
    *index = from_one(found);
    return status;
}

int diomp_fortran_test_until_some(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted,
                                  CFI_cdesc_t *indices, int *num_found, CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_test_until_some", words, cmp, wanted, left_out);
    return all.run_some(array(indices), num_found, ompx_test_until_some);
}

int diomp_fortran_test_until_all(CFI_cdesc_t *words, int cmp, CFI_cdesc_t *wanted,
                                 CFI_cdesc_t *left_out) {
    caller const here(DIOMP_FORTRAN_CALLER);
    compared_words const all("ompx_test_until_all", words, cmp, wanted, left_out);
    return all.run([](auto... given) { return ompx_test_until_all(given...); });
}

// Called by procedures of the module.

int diomp_fortran_event_wait_all(ompx_event_t *events, std::size_t count) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    return ompx_event_wait_all(events, count);
}

int diomp_fortran_event_wait_any(ompx_event_t *events, std::size_t count, const int *skip,
                                 int *index) {
    caller const here(DIOMP_FORTRAN_OUTER_CALLER);
    std::size_t found = OMPX_NO_INDEX;
    int const status = ompx_event_wait_any(events, count, skip, &found);
    *index = from_one(found);
    return status;
}

} // extern "C"
