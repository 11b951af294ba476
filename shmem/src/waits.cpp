// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define SHMEM_DEFINE_UNTYPED_
#include "shmem/waits.h"

#include "library.h"

using namespace diomp_shmem;

namespace {

/// A set of variables and what they are compared with: one value for all, or one for each.
template <typename T>
struct wait_set {
    const char *function;
    const T *variables;
    std::size_t count;
    const int *skip;
    int cmp;
    const T *values;
    std::size_t num_values;

    [[nodiscard]] ompx_cmp_t comparison() const { return static_cast<ompx_cmp_t>(cmp); }
};

using any_form = decltype(ompx_wait_until_any) *;
using some_form = decltype(ompx_wait_until_some) *;
using all_form = decltype(ompx_wait_until_all) *;

template <typename T>
int all_of(all_form form, const wait_set<T> &set) {
    require_ready(set.function);
    if (set.count == 0) {
        return 1;
    }
    int const outcome = form(set.variables, type_of<T>(), set.count, set.skip, set.comparison(),
                             set.values, set.num_values);
    check(set.function, outcome);
    return outcome;
}

/// Another element in each call, at random: a series of calls must return each element that
/// fulfils its comparison.
std::size_t choose_start(std::size_t count) {
    static thread_local std::uint32_t state = 2463534242U; // xorshift (Marsaglia, 2003)
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return static_cast<std::size_t>((std::uint64_t{state} * count) >> 32) % count;
}

/// The elements from `start` on.
template <typename T>
wait_set<T> tail_of(const wait_set<T> &set, std::size_t start) {
    bool const has_one_value = set.num_values == 1;
    return {set.function,
            set.variables + start,
            set.count - start,
            set.skip == nullptr ? nullptr : set.skip + start,
            set.cmp,
            has_one_value ? set.values : set.values + start,
            has_one_value ? 1 : set.num_values - start};
}

template <typename T>
std::size_t call_any(any_form form, const wait_set<T> &set) {
    std::size_t index = OMPX_NO_INDEX;
    check(set.function, form(set.variables, type_of<T>(), set.count, set.skip, set.comparison(),
                             set.values, set.num_values, &index));
    return index;
}

template <typename T>
std::size_t any_of(any_form form, const wait_set<T> &set) {
    require_ready(set.function);
    if (set.count == 0) {
        return OMPX_NO_INDEX;
    }
    if (std::size_t const start = choose_start(set.count); start > 0) {
        std::size_t const index = call_any(ompx_test_until_any, tail_of(set, start));
        if (index != OMPX_NO_INDEX) {
            return start + index;
        }
    }
    return call_any(form, set);
}

template <typename T>
std::size_t some_of(some_form form, const wait_set<T> &set, std::size_t *indices) {
    require_ready(set.function);
    std::size_t num_found = 0;
    if (set.count > 0) {
        check(set.function, form(set.variables, type_of<T>(), set.count, set.skip, set.comparison(),
                                 set.values, set.num_values, indices, &num_found));
    }
    return num_found;
}

template <typename T>
void wait_for(const char *function, const T *variable, int cmp, T value) {
    require_ready(function);
    check(function, ompx_wait_until(variable, type_of<T>(), static_cast<ompx_cmp_t>(cmp), &value));
}

template <typename T>
int test(const char *function, const T *variable, int cmp, T value) {
    require_ready(function);
    int const outcome =
        ompx_test_until(variable, type_of<T>(), static_cast<ompx_cmp_t>(cmp), &value);
    check(function, outcome);
    return outcome;
}

} // namespace

#define DEFINE_SET_(name, type, after, value, values, num_values)                                  \
    void shmem_##name##_wait_until_all##after(type *ivars, size_t nelems, const int *status,       \
                                              int cmp, value) {                                    \
        all_of<type>(ompx_wait_until_all,                                                          \
                     {__func__, ivars, nelems, status, cmp, values, num_values});                  \
    }                                                                                              \
    size_t shmem_##name##_wait_until_any##after(type *ivars, size_t nelems, const int *status,     \
                                                int cmp, value) {                                  \
        return any_of<type>(ompx_wait_until_any,                                                   \
                            {__func__, ivars, nelems, status, cmp, values, num_values});           \
    }                                                                                              \
    size_t shmem_##name##_wait_until_some##after(type *ivars, size_t nelems, size_t *indices,      \
                                                 const int *status, int cmp, value) {              \
        return some_of<type>(ompx_wait_until_some,                                                 \
                             {__func__, ivars, nelems, status, cmp, values, num_values}, indices); \
    }                                                                                              \
    int shmem_##name##_test_all##after(type *ivars, size_t nelems, const int *status, int cmp,     \
                                       value) {                                                    \
        return all_of<type>(ompx_test_until_all,                                                   \
                            {__func__, ivars, nelems, status, cmp, values, num_values});           \
    }                                                                                              \
    size_t shmem_##name##_test_any##after(type *ivars, size_t nelems, const int *status, int cmp,  \
                                          value) {                                                 \
        return any_of<type>(ompx_test_until_any,                                                   \
                            {__func__, ivars, nelems, status, cmp, values, num_values});           \
    }                                                                                              \
    size_t shmem_##name##_test_some##after(type *ivars, size_t nelems, size_t *indices,            \
                                           const int *status, int cmp, value) {                    \
        return some_of<type>(ompx_test_until_some,                                                 \
                             {__func__, ivars, nelems, status, cmp, values, num_values}, indices); \
    }

#define DEFINE_WAITS_(name, type)                                                                  \
    void shmem_##name##_wait_until(type *ivar, int cmp, type cmp_value) {                          \
        wait_for<type>(__func__, ivar, cmp, cmp_value);                                            \
    }                                                                                              \
    int shmem_##name##_test(type *ivar, int cmp, type cmp_value) {                                 \
        return test<type>(__func__, ivar, cmp, cmp_value);                                         \
    }                                                                                              \
    DEFINE_SET_(name, type, , type cmp_value, &cmp_value, 1)                                       \
    DEFINE_SET_(name, type, _vector, const type *cmp_values, cmp_values, nelems)

#define DEFINE_OLD_WAIT_(name, type)                                                               \
    void shmem_##name##_wait(type *ivar, type cmp_value) {                                         \
        wait_for<type>(__func__, ivar, SHMEM_CMP_NE, cmp_value);                                   \
    }

extern "C" {

SHMEM_WAIT_TYPES_(DEFINE_WAITS_)
SHMEM_OLD_WAIT_TYPES_(DEFINE_OLD_WAIT_)

void shmem_wait_until(long *ivar, int cmp, long cmp_value) {
    wait_for<long>(__func__, ivar, cmp, cmp_value);
}

void shmem_wait(long *ivar, long cmp_value) {
    wait_for<long>(__func__, ivar, SHMEM_CMP_NE, cmp_value);
}

uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value) {
    require_ready(__func__);
    uint64_t found = 0;
    check(__func__,
          ompx_signal_wait_fetch(sig_addr, static_cast<ompx_cmp_t>(cmp), cmp_value, &found));
    return found;
}

} // extern "C"
