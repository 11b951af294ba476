// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "polling.h"

#include "diomp_library.h"

#include <array>
#include <span>

namespace diomp::bench {
namespace {

template <typename Call>
void measure_call(const char *operation, std::size_t size_bytes, const sampling &how, report &into,
                  const Call &call) {
    const body run = single_rank_body(call);
    into.add({"poll", operation, "-", 1, size_bytes, measure(std::span(&run, 1), how).front()});
}

} // namespace

void measure_polling(const sampling &how, report &into) {
    std::array<std::uint64_t, 64> signals{};
    signals.back() = 1;
    measure_call("signal_test", sizeof(std::uint64_t), how, into, [&] {
        if (ompx_signal_test(signals.data(), OMPX_CMP_EQ, 1) != 0) {
            fail("ompx_signal_test found a value that is not there");
        }
    });
    measure_call("signal_wait_any", sizeof(signals), how, into, [&] {
        std::size_t index = 0;
        check(
            ompx_signal_wait_any(signals.data(), signals.size(), nullptr, OMPX_CMP_EQ, 1, &index));
        if (index != signals.size() - 1) {
            fail("ompx_signal_wait_any found another signal");
        }
    });
    measure_call("progress", 0, how, into, [] { check(ompx_progress()); });
}

} // namespace diomp::bench
