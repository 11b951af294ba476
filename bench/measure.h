// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timing of all benchmarks: DiOMP's and the peers' programs include this file, which alone
// determines how long, how often and in which order operations run.
//
// Glossary: a body runs an operation `iterations` times back to back and returns the seconds that
// the loop took. A sample is one run of a body; its value is seconds / iterations. Counted: the
// loop and what it calls. Not counted: one untimed iteration before each sample, the barrier before
// a distributed loop, the clock (two reads per sample), and a warm-up. Reported: median, 10th and
// 90th percentile of the samples.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace diomp::bench {

struct sampling {
    double min_time_s = 0.01; ///< each sample lasts at least this long ...
    int samples = 9;
    std::uint64_t min_iterations = 2; ///< ... and runs at least so many iterations
    double warm_up_s = 0;             ///< total time of warm_up()
};

struct timing {
    double median_us = 0;
    double p10_us = 0;
    double p90_us = 0;
    int samples = 0;
    std::uint64_t iterations = 0; ///< per sample

    [[nodiscard]] timing divided_by(std::size_t parts) const {
        const auto number = static_cast<double>(parts);
        return {median_us / number, p10_us / number, p90_us / number, samples, iterations};
    }
};

using body = std::function<double(std::uint64_t iterations)>;

class stopwatch {
public:
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Interpolates linearly between the closest values. `sorted` must be ascending and not empty,
/// fraction in [0, 1].
inline double percentile(std::span<const double> sorted, double fraction) {
    const double position = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double weight = position - static_cast<double>(below);
    return sorted[below] * (1 - weight) + sorted[above] * weight;
}

inline timing summarise(std::vector<double> samples_us, std::uint64_t iterations) {
    std::sort(samples_us.begin(), samples_us.end());
    return {percentile(samples_us, 0.5), percentile(samples_us, 0.1), percentile(samples_us, 0.9),
            static_cast<int>(samples_us.size()), iterations};
}

/// Returns the number of iterations that fill a sample; also serves as warm-up. A distributed body
/// returns the same seconds on every rank, so all ranks find the same number without communication.
inline std::uint64_t calibrate(const body &run, const sampling &how) {
    constexpr std::uint64_t max_iterations = 1u << 30;
    std::uint64_t iterations = how.min_iterations;
    run(1); // touches memory and connects ranks; alone it may take longer than a sample
    while (true) {
        const double elapsed = run(iterations);
        if (elapsed >= how.min_time_s || iterations >= max_iterations) {
            return iterations;
        }
        // 1.2: aims beyond the goal, so that the next run most likely ends the search. At most
        // tenfold, because a cold first run may be wrong in either direction.
        const double scale = 1.2 * how.min_time_s / std::max(elapsed, 1e-9);
        const double next = std::ceil(static_cast<double>(iterations) * std::min(scale, 10.0));
        iterations = std::max(iterations + 1, static_cast<std::uint64_t>(next));
    }
}

/// Runs the body until this process has spent warm_up_s in warm-up: if ranks share cores, the
/// system needs a tenth of a second to distribute them evenly.
inline void warm_up(const body &run, const sampling &how) {
    static double spent_s = 0;
    if (spent_s < how.warm_up_s) {
        const std::uint64_t iterations = calibrate(run, how);
        while (spent_s < how.warm_up_s) {
            spent_s += run(iterations);
        }
    }
}

/// Measures bodies against each other: sample 1 of each, sample 2 of each, ... so that changes of
/// the machine's speed affect all of them. A body whose samples take 20 times the intended time
/// gets 3 samples. All decisions depend on the values that bodies return, see calibrate().
inline std::vector<timing> measure(std::span<const body> bodies, const sampling &how) {
    warm_up(bodies.front(), how);
    std::vector<std::uint64_t> iterations;
    iterations.reserve(bodies.size());
    for (const body &run : bodies) {
        iterations.push_back(calibrate(run, how));
    }
    const double budget_s = 20 * how.min_time_s * how.samples;
    std::vector<double> spent_s(bodies.size());
    std::vector<std::vector<double>> samples_us(bodies.size());
    for (int sample = 0; sample < how.samples; ++sample) {
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            if (sample >= 3 && spent_s[i] > budget_s) {
                continue;
            }
            bodies[i](1); // reloads data that the previous body evicted from the caches
            const double elapsed = bodies[i](iterations[i]);
            spent_s[i] += elapsed;
            samples_us[i].push_back(elapsed * 1e6 / static_cast<double>(iterations[i]));
        }
    }
    std::vector<timing> result;
    result.reserve(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        result.push_back(summarise(std::move(samples_us[i]), iterations[i]));
    }
    return result;
}

/// Makes a body from an operation that one rank runs alone. The operation is copied to a local
/// variable of the loop, so that its captures can stay in registers, as a program's own variables
/// do.
template <typename Operation>
body single_rank_body(Operation operation) {
    return [operation](std::uint64_t iterations) {
        Operation local_operation = operation;
        const stopwatch watch;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            local_operation();
        }
        return watch.seconds();
    };
}

/// Makes a body from an operation that all ranks run at once: they leave a barrier together, each
/// rank times its own loop, and the slowest rank counts.
template <typename Library, typename Operation>
body all_ranks_body(Library &library, Operation operation) {
    return [&library, operation](std::uint64_t iterations) {
        Operation local_operation = operation;
        library.barrier();
        const stopwatch watch;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            local_operation();
        }
        return library.max_over_ranks(watch.seconds());
    };
}

} // namespace diomp::bench
