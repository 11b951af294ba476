// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The measurement core: sampling, percentiles, the checks of data, the files.
#include "bench/collectives.h"
#include "bench/measure.h"
#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <sstream>

namespace diomp::bench {
namespace {

TEST(percentile, interpolates_between_samples) {
    const std::vector<double> sorted{1, 2, 3, 4};
    EXPECT_DOUBLE_EQ(percentile(sorted, 0.0), 1);
    EXPECT_DOUBLE_EQ(percentile(sorted, 0.5), 2.5);
    EXPECT_DOUBLE_EQ(percentile(sorted, 1.0), 4);
    EXPECT_DOUBLE_EQ(percentile(std::vector<double>{7}, 0.9), 7);
}

TEST(summarise, sorts_and_takes_the_median) {
    const timing time = summarise({9, 1, 5}, 10);
    EXPECT_DOUBLE_EQ(time.median_us, 5);
    EXPECT_LT(time.p10_us, time.median_us);
    EXPECT_GT(time.p90_us, time.median_us);
    EXPECT_EQ(time.samples, 3);
    EXPECT_EQ(time.iterations, 10u);
}

/// A clock of its own: an iteration takes exactly `iteration_s`.
body steady(double iteration_s, std::vector<std::uint64_t> &calls) {
    return [iteration_s, &calls](std::uint64_t iterations) {
        calls.push_back(iterations);
        return iteration_s * static_cast<double>(iterations);
    };
}

TEST(calibrate, fills_the_sample_time) {
    std::vector<std::uint64_t> calls;
    const std::uint64_t iterations = calibrate(steady(1e-6, calls), {.min_time_s = 1e-2});
    EXPECT_GE(iterations, 10000u);
    EXPECT_LE(iterations, 20000u);
    EXPECT_LT(calls.size(), 10u);
}

TEST(calibrate, a_slow_operation_runs_the_least_iterations) {
    std::vector<std::uint64_t> calls;
    EXPECT_EQ(calibrate(steady(1.0, calls), {.min_time_s = 1e-2, .min_iterations = 2}), 2u);
}

TEST(warm_up, is_spent_once_in_a_process) {
    std::vector<std::uint64_t> calls;
    sampling const how{.min_time_s = 1e-2, .warm_up_s = 1.0};
    const auto seconds = [&calls] {
        return 1e-3 * static_cast<double>(std::accumulate(calls.begin(), calls.end(), 0UL));
    };
    warm_up(steady(1e-3, calls), how);
    EXPECT_GE(seconds(), 1.0);
    EXPECT_LT(seconds(), 1.2);
    calls.clear();
    warm_up(steady(1e-3, calls), how);
    EXPECT_TRUE(calls.empty());
}

TEST(measure, takes_samples_of_several_bodies_in_turn) {
    std::vector<char> order;
    const auto logged = [&order](char name, double iteration_s) -> body {
        return [&order, name, iteration_s](std::uint64_t iterations) {
            if (iterations > 1) {
                order.push_back(name);
            }
            return iteration_s * static_cast<double>(iterations);
        };
    };
    const std::vector<body> bodies{logged('a', 1e-3), logged('b', 2e-3)};
    const auto times = measure(bodies, {.min_time_s = 1e-3, .samples = 3});
    ASSERT_EQ(times.size(), 2u);
    EXPECT_NEAR(times[0].median_us, 1000, 1e-6);
    EXPECT_NEAR(times[1].median_us, 2000, 1e-6);
    const std::string samples(order.end() - 6, order.end());
    EXPECT_EQ(samples, "ababab");
}

TEST(measure, gives_up_samples_of_a_body_that_crawls) {
    std::vector<std::uint64_t> calls;
    const std::vector<body> bodies{steady(10.0, calls)};
    EXPECT_EQ(measure(bodies, {.min_time_s = 1e-3, .samples = 50}).front().samples, 3);
}

TEST(pattern, names_the_first_wrong_byte) {
    std::vector<char> memory(100);
    fill_pattern(memory.data(), memory.size(), 3);
    EXPECT_EQ(pattern_error(memory.data(), memory.size(), 3), "");
    EXPECT_NE(pattern_error(memory.data(), memory.size(), 4), "");
    memory[42] = static_cast<char>(memory[42] + 1);
    EXPECT_THAT(pattern_error(memory.data(), memory.size(), 3),
                testing::HasSubstr("byte 42 of 100"));
}

/// What a correct library makes of the sources of all ranks, block by block.
std::vector<double> reference_result(const collective &what, int me, int ranks, std::size_t count) {
    std::vector<double> result;
    for (int block = 0; block < (what.dst_per_rank ? ranks : 1); ++block) {
        for (std::size_t i = 0; i < count; ++i) {
            double value = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const bool counts = what.sums || rank == (what.dst_per_rank ? block : 0);
                value += counts ? element(rank, what.src_follows_me ? me : 0, i) : 0;
            }
            result.push_back(value);
        }
    }
    return result;
}

TEST(result_error, accepts_the_right_result_and_finds_each_wrong_element) {
    for (const collective &what : collectives()) {
        std::vector<double> result = reference_result(what, 1, 3, 5);
        EXPECT_EQ(result_error(what, result.data(), 1, 3, 5), "") << what.name;
        for (double &value : result) {
            value += 1;
            EXPECT_NE(result_error(what, result.data(), 1, 3, 5), "") << what.name;
            value -= 1;
        }
    }
}

const context run_of_two{"diomp", "shm", 2};

row example() { return {"put", "put", "private", 1, 4096, {2.0, 1.5, 3.0, 9, 1000}}; }

TEST(write_json, is_json_with_all_columns) {
    std::ostringstream out;
    write_json(out, {example(), example()}, run_of_two);
    const auto document = nlohmann::json::parse(out.str());
    EXPECT_EQ(document["schema"], "diomp-bench/1");
    ASSERT_EQ(document["rows"].size(), 2u);
    const auto &first = document["rows"][0];
    EXPECT_EQ(first["operation"], "put");
    EXPECT_EQ(first["ranks"], 2);
    EXPECT_DOUBLE_EQ(first["median_us"], 2.0);
    EXPECT_DOUBLE_EQ(first["mb_per_s"], 2048.0);
    EXPECT_DOUBLE_EQ(first["per_s"], 500000.0);
    for (const char *name :
         {"benchmark", "library", "buffers", "threads", "size_bytes", "p10_us", "p90_us", "samples",
          "iterations", "conduit", "cpu", "cores", "commit"}) {
        EXPECT_TRUE(first.contains(name)) << name;
    }
}

TEST(write_csv, has_a_heading_and_as_many_fields_in_each_line) {
    std::ostringstream out;
    write_csv(out, {example()}, {"diomp", "a \"quoted\" name", 2});
    std::istringstream lines(out.str());
    std::string heading;
    std::string line;
    std::getline(lines, heading);
    std::getline(lines, line);
    EXPECT_THAT(heading, testing::StartsWith("benchmark,library,operation,buffers,ranks"));
    EXPECT_THAT(line, testing::HasSubstr("\"a \"\"quoted\"\" name\""));
    EXPECT_EQ(std::count(heading.begin(), heading.end(), ','), 17);
}

TEST(report, says_when_a_file_cannot_be_written) {
    const report results(run_of_two, true);
    EXPECT_FALSE(results.write_files("/dev/null/impossible", ""));
}

} // namespace
} // namespace diomp::bench
