// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ompx_finalize beside calls of other threads: an error for either, and nothing is lost.
#include "support/check.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t large = std::size_t{1} << 20;

int g_peer;
std::int64_t *g_memory;

/// One of several calls, all of which may be made at any time. False: neither right nor refused.
bool make_call(int which) {
    std::int64_t one = 1;
    std::int64_t before = 0;
    int code = OMPX_SUCCESS;
    static thread_local std::vector<char> local(large);
    switch (which % 6) {
    case 0:
        code = ompx_put(g_peer, g_memory + 2, &one, sizeof(one));
        break;
    case 1:
        code = ompx_fence();
        break;
    case 2:
        code = ompx_atomic_fetch_add(g_peer, g_memory + 3, &one, &before, OMPX_INT64);
        break;
    case 3:
        code = ompx_get(local.data(), g_peer, g_memory, large);
        break;
    case 4:
        code = ompx_rank_num() < 0 ? OMPX_ERR_STATE : OMPX_SUCCESS;
        break;
    default:
        if (void *const made = ompx_alloc(64, 0, OMPX_MEM_LOCAL); made != nullptr) {
            code = ompx_free(made);
        }
    }
    return code == OMPX_SUCCESS || code == OMPX_ERR_STATE;
}

/// Whether somebody has read or written the page.
bool is_touched(void *page) {
    unsigned char state = 0;
    CHECK(::mincore(page, 1, &state) == 0);
    return (state & 1) != 0;
}

/// While a thread waits, the end is refused by name, and the runtime goes on.
void refuse_while_a_thread_waits() {
    // The first look at the word, which is inside the call, takes a page.
    auto *const word = static_cast<std::int64_t *>(ompx_alloc(large, 4096, OMPX_MEM_SYMMETRIC));
    CHECK(word != nullptr);
    CHECK(!is_touched(word));
    CHECK(ompx_barrier() == 0);
    std::int64_t const one = 1;
    std::thread waiting([&] { CHECK(ompx_wait_until(word, OMPX_INT64, OMPX_CMP_EQ, &one) == 0); });
    while (!is_touched(word)) {
        std::this_thread::yield();
    }
    FAILS(ompx_finalize(), OMPX_ERR_STATE,
          "is in ompx_wait_until: the runtime that it uses cannot end");
    CHECK(ompx_is_initialized() == 1);
    CHECK(ompx_barrier() == 0);
    CHECK(ompx_put(g_peer, word, &one, sizeof(one)) == 0);
    CHECK(ompx_fence() == 0);
    waiting.join();
}

/// Threads call all the time; each call is made or refused, and so is the end.
void end_beside_calls() {
    constexpr int num_threads = 3;
    std::atomic<bool> is_over{false};
    std::atomic<bool> is_wrong{false};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (int i = thread; !is_over.load(); ++i) {
                if (!make_call(i)) {
                    is_wrong.store(true);
                }
                if (i % 8 == 0) { // or the end would hardly ever find all of them outside
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
            }
        });
    }
    int code = 0;
    while ((code = ompx_finalize()) != OMPX_SUCCESS) {
        CHECK(code == OMPX_ERR_STATE);
        CHECK(std::string(ompx_last_error()).find("cannot end") != std::string::npos);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    for (int i = 0; i < 1000; ++i) {
        std::this_thread::yield(); // their calls are refused, or copy in line
    }
    is_over.store(true);
    for (std::thread &each : threads) {
        each.join();
    }
    if (is_wrong.load()) {
        std::fprintf(stderr, "a call was neither made nor refused\n");
        std::_Exit(1);
    }
}

} // namespace

int main() {
    g_peer = (ompx_rank_num() + 1) % ompx_num_ranks();
    g_memory = static_cast<std::int64_t *>(ompx_alloc(large, 0, OMPX_MEM_SYMMETRIC));
    CHECK(g_memory != nullptr);
    std::memset(g_memory, 0, large);
    CHECK(ompx_barrier() == 0);
    refuse_while_a_thread_waits();
    CHECK(ompx_barrier() == 0);
    end_beside_calls();
    return ompx_put(0, g_memory, g_memory, 8) == OMPX_ERR_STATE ? 0 : 1;
}
