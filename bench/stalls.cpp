// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures the longest durations of small calls. All ranks run allreduces of 24 bytes, barriers and
// puts with a signal around a ring, in turn, for a given time, with short computations of different
// length between some of them. The duration of every call is counted in a histogram. For each call
// of 10 ms and more the ranks add up how long they were runnable without a core meanwhile, because
// of other programs or the hypervisor; the scheduler does not explain the rest of the duration.
// Exit status: 1 if that rest is more than --limit-ms for any call.
//
// diomp-run -n 2 --bind-to none bench_stalls [--seconds S] [--limit-ms MS] [--compute-us US]
//                                            [--seed N]
// bench/find-stalls runs it beside programs that come and go.
#include "report.h"
#include "scheduling.h"

#include <array>
#include <cstring>
#include <diomp.h>
#include <getopt.h>
#include <random>
#include <span>

namespace diomp::bench {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t long_call_ns = 10 * ns_per_ms;
constexpr std::int64_t collect_after_ns = 1000 * ns_per_ms;
constexpr std::size_t max_events = 64; ///< per rank, between two collections
constexpr std::size_t num_bins = 28;   ///< the last one: 67 s and more
constexpr std::size_t data_bytes = 64;
constexpr std::size_t num_shown = 20;

struct stall_options {
    double seconds = 10;
    double limit_ms = 50;
    double compute_us = 100;
    unsigned seed = 1;
};

enum kind : std::size_t { allreduce_call, barrier_call, signal_call, num_kinds };
constexpr const char *kind_names[] = {"allreduce", "barrier", "signal"};

struct event {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t what;
};

/// One rank's contribution to the explanation of an event.
struct explanation {
    std::int64_t caller_delay;
    std::int64_t helper_delay;
    std::int64_t stolen;
};

struct explained_event {
    event call;
    std::size_t rank;
    explanation own;
    explanation others; ///< sum over the other ranks
    std::int64_t stolen = 0;
    std::int64_t unexplained = 0;
};

void check(int status) {
    if (status != OMPX_SUCCESS) { // with DIOMP_ERRORS=return; otherwise the job has ended
        ompx_abort(1);
    }
}

[[noreturn]] void fail(const char *what, std::int64_t round) {
    std::fprintf(stderr, "bench_stalls: wrong %s in round %lld on rank %d\n", what,
                 static_cast<long long>(round), ompx_rank_num());
    ompx_abort(1);
}

std::size_t bin_of(std::int64_t ns) {
    std::size_t bin = 0;
    for (std::int64_t us = ns / 1000; us > 0 && bin + 1 < num_bins; us /= 2) {
        ++bin;
    }
    return bin;
}

class stall_search {
public:
    explicit stall_search(const stall_options &wanted)
        : wanted_(wanted), rank_(static_cast<std::size_t>(ompx_rank_num())),
          ranks_(static_cast<std::size_t>(ompx_num_ranks())), random_(wanted.seed + rank_) {
        static_assert(alignof(std::uint64_t) <= 64);
        signal_ = static_cast<std::uint64_t *>(ompx_alloc(64, 64, OMPX_MEM_SYMMETRIC));
        data_ = static_cast<unsigned char *>(ompx_alloc(data_bytes, 64, OMPX_MEM_SYMMETRIC));
        if (signal_ == nullptr || data_ == nullptr) {
            ompx_abort(1);
        }
        *signal_ = 0;
        check(ompx_barrier());
    }

    [[nodiscard]] bool can_explain() const { return history_.is_available(); }

    /// Runs the search. Returns true if no call took longer than the scheduler explains by more
    /// than the limit. Collective.
    bool run() {
        check(ompx_barrier());
        if (rank_ == 0) {
            std::printf(
                "bench_stalls  %zu ranks, %g s, computing up to %g us, seed %u, commit %s\n",
                ranks_, wanted_.seconds, wanted_.compute_us, wanted_.seed, commit);
            std::fflush(stdout);
        }
        begin_ = collected_ = now_ns();
        while (run_round()) {
        }
        collect();
        sum_histograms();
        if (rank_ == 0) {
            print();
        }
        check(ompx_barrier()); // a rank that ends with status 1 ends the job
        std::int64_t worst = 0;
        for (const explained_event &each : explained_) {
            worst = std::max(worst, each.unexplained);
        }
        return static_cast<double>(worst) <= wanted_.limit_ms * ns_per_ms;
    }

private:
    template <typename Call>
    void timed(kind what, Call call) {
        std::int64_t const begin = now_ns();
        call();
        std::int64_t const end = now_ns();
        ++histogram_[what][bin_of(end - begin)];
        if (end - begin >= long_call_ns) [[unlikely]] {
            history_.sample_now(end, true);
            if (events_.size() < max_events) {
                events_.push_back({begin, end, static_cast<std::int64_t>(what)});
            } else {
                ++num_dropped_;
            }
        } else {
            history_.sample_if_due(end);
        }
    }

    /// Computes for a random time, which differs between ranks, so that each rank waits at times.
    void compute() {
        std::uniform_real_distribution<double> length(0, wanted_.compute_us * 1000);
        std::int64_t const end = now_ns() + static_cast<std::int64_t>(length(random_));
        while (now_ns() < end) {
        }
    }

    /// Returns false after the last round. All ranks decide by the same sums.
    bool run_round() {
        std::int64_t const now = now_ns();
        bool const is_over = static_cast<double>(now - begin_) >= wanted_.seconds * 1e9;
        bool const collects =
            now - collected_ >= collect_after_ns || events_.size() >= max_events / 2;
        std::int64_t const given[3] = {is_over ? 1 : 0, collects ? 1 : 0, ++round_};
        std::int64_t sums[3] = {};
        bool const computes = round_ % 4 == 0;
        timed(allreduce_call, [&] {
            check(ompx_allreduce(sums, given, 3, OMPX_INT64, OMPX_SUM, ompx_group_world));
        });
        if (sums[2] != round_ * static_cast<std::int64_t>(ranks_)) {
            fail("sum", round_);
        }
        if (computes) {
            compute();
        }
        timed(barrier_call, [] { check(ompx_barrier()); });
        if (computes) {
            compute();
        }
        pass_signal();
        if (sums[1] > 0) {
            collect();
        }
        return sums[0] == 0;
    }

    /// Sends data with a signal to the right neighbour and checks the data from the left one. The
    /// next round's barrier prevents overwriting before the check.
    void pass_signal() {
        auto const sent = static_cast<std::uint64_t>(round_);
        unsigned char bytes[data_bytes];
        std::memset(bytes, static_cast<int>((sent * 31 + rank_) & 0xff), sizeof(bytes));
        timed(signal_call, [&] {
            check(ompx_put_signal(static_cast<int>((rank_ + 1) % ranks_), data_, bytes,
                                  sizeof(bytes), signal_, sent, OMPX_SIGNAL_SET));
            check(ompx_signal_wait(signal_, OMPX_CMP_GE, sent));
        });
        std::size_t const from = (rank_ + ranks_ - 1) % ranks_;
        auto const expected = static_cast<unsigned char>(sent * 31 + from);
        for (unsigned char const each : std::span(data_, data_bytes)) {
            if (each != expected) {
                fail("data with a signal", round_);
            }
        }
    }

    /// Exchanges the scheduling delays of all ranks during the long calls of all ranks.
    void collect() {
        std::int64_t const given = static_cast<std::int64_t>(events_.size());
        std::int64_t max_given = 0;
        check(ompx_allreduce(&max_given, &given, 1, OMPX_INT64, OMPX_MAX, ompx_group_world));
        collected_ = now_ns();
        history_.sample_now(collected_, max_given > 0);
        if (max_given == 0) {
            return;
        }
        auto const each = static_cast<std::size_t>(max_given);
        events_.resize(each);
        std::vector<event> all(each * ranks_);
        check(ompx_allgather(all.data(), events_.data(), each * sizeof(event), ompx_group_world));
        std::vector<explanation> own(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            scheduler_delay const delay = history_.between(all[i].begin, all[i].end);
            own[i] = {delay.of_caller, delay.of_helpers, delay.stolen};
        }
        std::vector<explanation> from_all(own.size() * ranks_);
        check(ompx_allgather(from_all.data(), own.data(), own.size() * sizeof(explanation),
                             ompx_group_world));
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].end > 0) {
                explained_.push_back(explain(all[i], i / each, from_all, i, all.size()));
            }
        }
        events_.clear();
    }

    /// `from_all`: [rank][event]
    [[nodiscard]] explained_event explain(const event &call, std::size_t of_rank,
                                          const std::vector<explanation> &from_all, std::size_t at,
                                          std::size_t num_events) const {
        explained_event result{call, of_rank, {}, {}};
        std::int64_t explained = 0;
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            const explanation &contribution = from_all[rank * num_events + at];
            explanation &sum = rank == of_rank ? result.own : result.others;
            sum.caller_delay += contribution.caller_delay;
            sum.helper_delay += contribution.helper_delay;
            result.stolen = std::max(result.stolen, contribution.stolen);
            explained += contribution.caller_delay + contribution.helper_delay;
        }
        result.unexplained =
            std::max<std::int64_t>(0, call.end - call.begin - explained - result.stolen);
        return result;
    }

    void sum_histograms() {
        auto own = histogram_;
        check(ompx_allreduce(histogram_.data(), own.data(), num_kinds * num_bins, OMPX_INT64,
                             OMPX_SUM, ompx_group_world));
        std::int64_t const own_dropped = num_dropped_;
        check(
            ompx_allreduce(&num_dropped_, &own_dropped, 1, OMPX_INT64, OMPX_SUM, ompx_group_world));
    }

    void print() {
        std::printf("%lld rounds, %.1f us each\n", static_cast<long long>(round_),
                    static_cast<double>(now_ns() - begin_) * 1e-3 / static_cast<double>(round_));
        std::printf("\ncalls by duration, of all ranks\n%14s", "us, below");
        for (const char *const name : kind_names) {
            std::printf(" %13s", name);
        }
        std::printf("\n");
        for (std::size_t bin = 0; bin < num_bins; ++bin) {
            std::int64_t in_bin = 0;
            for (const auto &of_kind : histogram_) {
                in_bin += of_kind[bin];
            }
            if (in_bin == 0) {
                continue;
            }
            std::printf("%14lld", 1LL << bin);
            for (const auto &of_kind : histogram_) {
                std::printf(" %13lld", static_cast<long long>(of_kind[bin]));
            }
            std::printf("\n");
        }
        print_worst();
    }

    void print_worst() {
        std::sort(explained_.begin(), explained_.end(),
                  [](const explained_event &one, const explained_event &other) {
                      return one.unexplained > other.unexplained;
                  });
        std::printf("\n%zu calls of 10 ms and more%s; by what the scheduler does not explain, in "
                    "ms:\n",
                    explained_.size() + static_cast<std::size_t>(num_dropped_),
                    num_dropped_ > 0 ? " (not all are examined)" : "");
        std::printf("%11s %9s %9s %9s %9s %9s %5s %-9s %9s\n", "unexplained", "duration",
                    "own delay", "others'", "helpers'", "stolen", "rank", "call", "after s");
        auto const ms = [](std::int64_t ns) { return static_cast<double>(ns) / ns_per_ms; };
        for (std::size_t i = 0; i < std::min(num_shown, explained_.size()); ++i) {
            const explained_event &each = explained_[i];
            std::printf("%11.2f %9.2f %9.2f %9.2f %9.2f %9.2f %5zu %-9s %9.2f\n",
                        ms(each.unexplained), ms(each.call.end - each.call.begin),
                        ms(each.own.caller_delay), ms(each.others.caller_delay),
                        ms(each.own.helper_delay + each.others.helper_delay), ms(each.stolen),
                        each.rank, kind_names[each.call.what],
                        static_cast<double>(each.call.begin - begin_) * 1e-9);
        }
        std::fflush(stdout);
    }

    stall_options wanted_;
    std::size_t rank_;
    std::size_t ranks_;
    std::mt19937 random_;
    scheduling_history history_;
    std::uint64_t *signal_ = nullptr;
    unsigned char *data_ = nullptr;
    std::int64_t begin_ = 0;
    std::int64_t collected_ = 0;
    std::int64_t round_ = 0;
    std::array<std::array<std::int64_t, num_bins>, num_kinds> histogram_{};
    std::vector<event> events_; ///< since the last collection
    std::int64_t num_dropped_ = 0;
    std::vector<explained_event> explained_; ///< equal on all ranks
};

stall_options parse(int argc, char **argv) {
    stall_options result;
    static const option known[] = {{"seconds", required_argument, nullptr, 's'},
                                   {"limit-ms", required_argument, nullptr, 'l'},
                                   {"compute-us", required_argument, nullptr, 'c'},
                                   {"seed", required_argument, nullptr, 'r'},
                                   {nullptr, 0, nullptr, 0}};
    for (int found = 0; (found = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        double const value = optarg == nullptr ? 0 : std::atof(optarg);
        switch (found) {
        case 's':
            result.seconds = value;
            break;
        case 'l':
            result.limit_ms = value;
            break;
        case 'c':
            result.compute_us = value;
            break;
        case 'r':
            result.seed = static_cast<unsigned>(value);
            break;
        default:
            std::fprintf(stderr, "usage: bench_stalls [--seconds S] [--limit-ms MS] "
                                 "[--compute-us US] [--seed N]\n");
            std::exit(2);
        }
    }
    return result;
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    stall_options const wanted = parse(argc, argv);
    check(ompx_init());
    stall_search search(wanted);
    if (!search.can_explain()) {
        std::fprintf(stderr, "bench_stalls: this kernel does not count run delays "
                             "(/proc/self/schedstat); nothing can be explained\n");
        return 77;
    }
    return search.run() ? 0 : 1;
}
