// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Directives in templates, lambdas and classes; templates.expected has what is called.
#include "recorder.h"

#include <array>
#include <cstdio>

namespace {

template <typename T, int N>
void sum(ompx_group_t group) {
    T values[N][2];
    recorder_name(values, sizeof(values), "values");
#pragma ompx target device_allreduce(+ : values, group)
#pragma ompx target device_allreduce(max : values[1 : ], group)
}

template <typename T>
void share(T &what, ompx_group_t group) {
    recorder_name(&what, sizeof(what), "shared");
#pragma ompx target device_bcast(what, group) root(1)
    recorder_forget();
}

// In a class, bodies are kept and read at its end.
class field {
public:
    field() { recorder_name(this, sizeof(*this), "field"); }
    void exchange(int n) {
#pragma ompx target device_allgather(all_, own_[0 : n], group_)
    }
    void exchange_later() {
        auto const later = [this](auto count) {
#pragma ompx target device_gather(all_[ : ], own_[ : count], group_)
        };
        later(2L);
    }

private:
    int own_[3] = {};
    int all_[9] = {};
    ompx_group_t group_ = recorder_group(3);
};

template <typename T, typename Count>
void blocks(T *all, const Count &counts) {
    T own[2] = {};
#pragma ompx target device_alltoallv(all[0 : 6], own, recorder_group(2)) dst_counts(counts)        \
    src_counts(counts.data())
}

// Names like those of the interface in a scope around do not matter.
namespace elsewhere {
[[maybe_unused]] int ompx_target_bcast(int) { return 0; }
[[maybe_unused]] int size_t = 0;
void share_number() {
    int number = 1;
    recorder_name(&number, sizeof(number), "number");
    int &reference = number;
#pragma ompx target device_bcast(reference)
}
} // namespace elsewhere

struct group_owner {
    operator ompx_group_t() const { return recorder_group(7); }
};

} // namespace

int main() {
    sum<int, 2>(recorder_group(2));
    sum<double, 3>(nullptr);
    std::array<float, 4> some{};
    share(some, group_owner());
    long numbers[3] = {};
    share(numbers, nullptr);
    field one;
    one.exchange(2);
    one.exchange_later();
    elsewhere::share_number();
    long all[6] = {};
    recorder_name(all, sizeof(all), "all");
    blocks(all, std::array<short, 2>{{1, 3}});
    return 0;
}
