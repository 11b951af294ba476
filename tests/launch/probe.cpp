// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank that does with its launcher what its argument says. For job_test.py.
#include "launch/launch.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

using namespace diomp;

namespace {

int complain(const error &failure) {
    std::fprintf(stderr, "probe: %s (%s)\n", failure.message().c_str(), failure.remedy().c_str());
    return 3;
}

/// Several rounds of values that every rank checks.
int exchange_values(launch::launcher &job) {
    int const rank = job.info().rank.value();
    for (int round = 0; round < 3; ++round) {
        // Also a name that a launcher could use itself.
        std::string const key = round == 0 ? "node" : "key" + std::to_string(round);
        auto const value = [round](int owner) {
            return std::to_string(owner * 10 + round) +
                   std::string(static_cast<std::size_t>(owner) * 100, 'v');
        };
        if (auto put = job.put(key, value(rank)); !put) {
            return complain(put.failure());
        }
        if (auto fenced = job.fence(); !fenced) {
            return complain(fenced.failure());
        }
        for (int owner = 0; owner < job.info().size; ++owner) {
            auto const got = job.get(world_rank(owner), key);
            if (!got || got.value() != value(owner)) {
                std::fprintf(stderr, "probe: wrong %s of %d\n", key.c_str(), owner);
                return 4;
            }
        }
    }
    auto const missing = job.get(world_rank(job.info().size - 1), "never put");
    if (missing || missing.failure().code() != OMPX_ERR_STATE) {
        std::fputs("probe: a value that nobody put\n", stderr);
        return 5;
    }
    return 0;
}

/// A key that is put again with another value, and keys that are not there. Not for every
/// launcher: PMIx leaves open which value of a key counts.
int replace_values(launch::launcher &job) {
    std::string const own = std::to_string(job.info().rank.value());
    for (const char *const round : {"one", "two", "two", "three"}) {
        if (auto put = job.put("same", own + round); !put) {
            return complain(put.failure());
        }
        if (auto fenced = job.fence(); !fenced) {
            return complain(fenced.failure());
        }
        for (int owner = 0; owner < job.info().size; ++owner) {
            auto const got = job.get(world_rank(owner), "same");
            auto const missing = job.get(world_rank(owner), "missing");
            if (!got || got.value() != std::to_string(owner) + round || missing.ok() ||
                missing.failure().code() != OMPX_ERR_STATE) {
                std::fprintf(stderr, "probe: wrong values of %d in round %s\n", owner, round);
                return 4;
            }
        }
        if (auto fenced = job.fence(); !fenced) { // nobody changes it before all have looked
            return complain(fenced.failure());
        }
    }
    return 0;
}

/// "describe: PMIx rank 1 of 4 on a, local 1 of 2 (0,1), in job"
void describe(const launch::launcher &job) {
    auto const &info = job.info();
    std::string ranks;
    for (world_rank const rank : info.local_ranks) {
        ranks += (ranks.empty() ? "" : ",") + std::to_string(rank.value());
    }
    std::printf("describe: %s rank %d of %d on %s, local %d of %d (%s), in %s\n", job.name(),
                info.rank.value(), info.size, info.host.c_str(), info.local.value(),
                info.local_size, ranks.c_str(), info.job_id.c_str());
}

int enter_fence(launch::launcher &job) {
    auto fenced = job.fence();
    return fenced ? 0 : complain(fenced.failure());
}

/// As a rank that computes.
int wait_for_ever() {
    std::puts("waiting");
    std::fflush(stdout);
    for (;;) {
        pause();
    }
}

int wait_for_end(launch::launcher &job) {
    std::puts("waiting");
    std::fflush(stdout);
    pollfd ready{job.watch_fd(), POLLIN, 0};
    poll(&ready, 1, -1);
    std::puts("told");
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    std::string_view const what = argc > 1 ? argv[1] : "";
    int const chosen = argc > 2 ? std::atoi(argv[2]) : 0;
    auto connected = launch::connect();
    if (!connected) {
        return complain(connected.failure());
    }
    launch::launcher &job = *connected.value();
    bool const is_chosen = job.info().rank.value() == chosen;
    int status = 0;
    if (what == "exchange") {
        status = exchange_values(job);
        if (status == 0) {
            describe(job);
        }
    } else if (what == "replace") {
        status = replace_values(job);
    } else if (what == "abort" && is_chosen) {
        std::fputs("probe: own message\n", stderr);
        job.abort(argc > 3 ? std::atoi(argv[3]) : 1, "own message");
        pause();
    } else if (what == "abort_all") {
        job.abort(chosen, "own message");
        std::_Exit(1); // as the runtime does, without waiting for the end
    } else if (what == "leave" && is_chosen) {
        std::_Exit(0);
    } else if (what == "stop") {
        status = is_chosen ? wait_for_ever() : enter_fence(job);
    } else if (what == "compute") {
        status = wait_for_ever();
    } else if (what == "watch" && !is_chosen) {
        signal(SIGTERM, SIG_IGN); // the pipe has to tell
        status = wait_for_end(job);
    } else if (what == "crash" && is_chosen) {
        std::abort();
    } else if (what == "fail" && is_chosen) {
        std::_Exit(3);
    } else if (what == "child") {
        // A child of a rank is a world of its own.
        status = std::system((std::string(argv[0]) + " exchange").c_str()) == 0 ? 0 : 6;
    } else if (what == "environment") {
        // A child of a rank is not a rank.
        status = std::system("env | grep DIOMP_; ls -l /proc/self/fd | grep -c socket");
        status = 0;
    }
    if (what == "abort" || what == "leave" || what == "crash" || what == "fail") {
        if (auto fenced = job.fence(); !fenced) { // never completed: one rank is missing
            pause();
        }
    }
    if (auto finalized = job.finalize(); !finalized) {
        return complain(finalized.failure());
    }
    return status;
}
