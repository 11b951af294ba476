// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled with -fno-exceptions. Without arguments it uses each type once and ends with 0; with
// "fail" it reads past the end of an array, which must end the job with a message.
#include "diomp.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#if defined(__cpp_exceptions)
#error "this test is about programs without exceptions"
#endif

namespace {

bool use_everything() {
    const int me = diomp::this_rank();
    const int ranks = diomp::num_ranks();
    diomp::symmetric_array<int> array(10, me);
    array.put((me + 1) % ranks, 3, 100 + me);
    diomp::barrier();
    bool good = array[3] == 100 + (me + ranks - 1) % ranks;
    auto counter = diomp::make_symmetric<std::int64_t>(0);
    diomp::fetch_add(diomp::at(0, counter.get()), 1);
    {
        const diomp::lock_guard hold(0);
    }
    const auto everybody = diomp::group::split({}, 0);
    diomp::barrier(everybody);
    good = good && diomp::atomic_load(diomp::at(0, counter.get())) == ranks;
    const std::vector<int, diomp::symmetric_allocator<int>> values(5, me);
    std::vector<int> sums(5);
    diomp::allreduce(sums, values, diomp::op::sum);
    return good && sums[4] == ranks * (ranks - 1) / 2;
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1 && std::string_view(argv[1]) == "fail") {
        const diomp::symmetric_array<int> array(10);
        return array.get(0, 10);
    }
    return use_everything() ? 0 : 1;
}
