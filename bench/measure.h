// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How everything here is timed: ours and the peers' programs include this file and nothing else
// decides how long, how often and in which order something runs.
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
    double warm_up_s = 0;             ///< see warm_up()
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

/// Linear interpolation between closest ranks; `sorted` ascending and not empty, fraction in [0,
/// 1].
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

/// Finds how many iterations fill a sample; this is the warm-up too. A distributed body returns the
/// same seconds on every rank, so all ranks come to the same number without talking.
inline std::uint64_t calibrate(const body &run, const sampling &how) {
    constexpr std::uint64_t max_iterations = 1u << 30;
    std::uint64_t iterations = how.min_iterations;
    while (true) {
        const double elapsed = run(iterations);
        if (elapsed >= how.min_time_s || iterations >= max_iterations) {
            return iterations;
        }
        // 1.2: aim beyond the goal, so that the next run most likely ends the search. At most
        // tenfold, because a cold first run may mislead in either direction.
        const double scale = 1.2 * how.min_time_s / std::max(elapsed, 1e-9);
        const double next = std::ceil(static_cast<double>(iterations) * std::min(scale, 10.0));
        iterations = std::max(iterations + 1, static_cast<std::uint64_t>(next));
    }
}

/// Runs the body until warm_up_s have been spent so in this process: where ranks share cores, the
/// system takes a tenth of a second to spread them evenly.
inline void warm_up(const body &run, const sampling &how) {
    static double spent_s = 0;
    if (spent_s < how.warm_up_s) {
        const std::uint64_t iterations = calibrate(run, how);
        while (spent_s < how.warm_up_s) {
            spent_s += run(iterations);
        }
    }
}

/// Measures bodies against each other: sample 1 of each, sample 2 of each, ... so that a machine
/// that changes its pace does so for all of them. A body that is so slow that its samples take 20
/// times what they should gets 3 samples. Decisions rest on what bodies return, see calibrate().
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
            bodies[i](1); // brings back to the caches what the previous body drove out
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

/// A body from an operation that one rank runs alone. It is copied to where only the loop sees it,
/// so that what it holds can stay in registers, as a program's own variables do.
template <typename Operation>
body alone(Operation operation) {
    return [operation](std::uint64_t iterations) {
        Operation here = operation;
        const stopwatch watch;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            here();
        }
        return watch.seconds();
    };
}

/// A body from an operation that all ranks run at once: they leave a barrier together, each times
/// its own loop, and the slowest counts.
template <typename Library, typename Operation>
body together(Library &library, Operation operation) {
    return [&library, operation](std::uint64_t iterations) {
        Operation here = operation;
        library.barrier();
        const stopwatch watch;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            here();
        }
        return library.max_over_ranks(watch.seconds());
    };
}

} // namespace diomp::bench
