// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel and the model of Minimod against what is known of waves; one rank, no communication.
extern "C" {
#include "minimod/minimod_model.h"
#include "minimod/minimod_tune.h"
}

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// A model and its two fields, as run_steps would have them on one rank.
class simulation {
public:
    explicit simulation(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "minimod");
        std::vector<char *> argv;
        argv.reserve(arguments.size());
        for (auto &argument : arguments) {
            argv.push_back(argument.data());
        }
        char message[512] = "";
        EXPECT_EQ(minimod_read_options(&options_, 1, static_cast<int>(argv.size()), argv.data(),
                                       message, sizeof message),
                  MINIMOD_RUN)
            << message;
        double slowest = 0;
        double fastest = 0;
        EXPECT_EQ(model_load(&model_, &options_, 0, 1, &slowest, &fastest, message, sizeof message),
                  0)
            << message;
        EXPECT_EQ(model_complete(&model_, &options_, slowest, fastest, message, sizeof message), 0)
            << message;
        for (auto &field : fields_) {
            const std::size_t size_bytes = (model_.part.count * sizeof(float) + 63) / 64 * 64;
            field = static_cast<float *>(std::aligned_alloc(64, size_bytes));
            minimod_clear(&model_.part, field);
        }
    }
    simulation(const simulation &) = delete;
    simulation &operator=(const simulation &) = delete;
    ~simulation() {
        std::free(fields_[0]);
        std::free(fields_[1]);
        model_free(&model_);
    }

    void step() {
        ++steps_;
        model_advance(&model_, fields_[steps_ % 2], fields_[(steps_ + 1) % 2], steps_, 0,
                      model_.part.nx, rows_untried());
    }
    float at(int x, int y, int z) {
        return grid_plane(
            &model_.part, fields_[steps_ % 2],
            x)[static_cast<std::size_t>(y) * model_.part.pitch + static_cast<std::size_t>(z)];
    }
    double energy() {
        double sum = 0;
        const grid &g = model_.part;
        for (int x = 0; x < g.nx; ++x) {
            for (int y = 0; y < g.ny; ++y) {
                for (int z = 0; z < g.nz; ++z) {
                    sum += static_cast<double>(at(x, y, z)) * static_cast<double>(at(x, y, z));
                }
            }
        }
        return sum;
    }
    const model &get() const { return model_; }
    const minimod_options &options() const { return options_; }

private:
    minimod_options options_{};
    model model_{};
    float *fields_[2] = {nullptr, nullptr};
    int steps_ = 0;
};

double ricker(double frequency, double time) {
    const double a = M_PI * frequency * (time - 1.2 / frequency);
    return (1 - 2 * a * a) * std::exp(-a * a);
}

// A point source s(t) in a homogeneous medium gives u(r, t) = s(t - r / v) / (4 pi v^2 r) for the
// equation scaled as u_tt = v^2 laplacian(u) + v^2 s delta, that is s(t - r / v) / (4 pi r).
TEST(minimod_physics, follows_the_analytic_solution_of_a_point_source) {
    simulation run({"--grid", "96", "--model", "constant", "--source", "48", "48", "48", "--sponge",
                    "0", "--freq", "12"});
    const double v = 2000;
    const double dx = run.options().dx;
    const int away = 20;
    const double distance = away * dx;
    double worst = 0;
    double peak = 0;
    // Until the first reflection from a face could be back at the receiver.
    const int steps = static_cast<int>((2 * 47 - away) * dx / v / run.get().dt);
    for (int n = 1; n <= steps; ++n) {
        run.step();
        const double time = n * run.get().dt;
        const double exact =
            time > distance / v
                ? ricker(run.get().frequency, time - distance / v) / (4 * M_PI * distance)
                : 0;
        worst = std::max(worst, std::abs(static_cast<double>(run.at(48 + away, 48, 48)) - exact));
        peak = std::max(peak, std::abs(exact));
    }
    EXPECT_GT(peak, 3e-4); // the wave did pass
    EXPECT_LT(worst, 0.03 * peak);
}

TEST(minimod_physics, is_symmetric_along_all_axes) {
    simulation run({"--grid", "49", "--model", "constant", "--source", "24", "24", "24"});
    for (int n = 0; n < 60; ++n) {
        run.step();
    }
    ASSERT_NE(run.at(34, 24, 24), 0.0f);
    for (int d = 1; d <= 20; ++d) {
        const float reference = run.at(24 + d, 24, 24);
        const float tolerance = 1e-6f * 3e-3f; // of the size of the wave near the source
        EXPECT_NEAR(run.at(24 - d, 24, 24), reference, tolerance) << d;
        EXPECT_NEAR(run.at(24, 24 + d, 24), reference, tolerance) << d;
        EXPECT_NEAR(run.at(24, 24 - d, 24), reference, tolerance) << d;
        EXPECT_NEAR(run.at(24, 24, 24 + d), reference, tolerance) << d;
        EXPECT_NEAR(run.at(24, 24, 24 - d), reference, tolerance) << d;
    }
}

TEST(minimod_physics, sponge_swallows_what_reaches_the_faces) {
    const std::vector<std::string> common = {"--grid", "80", "--model",  "constant",
                                             "--freq", "12", "--source", "40",
                                             "40",     "40", "--sponge"};
    auto with = common;
    with.emplace_back("20");
    auto without = common;
    without.emplace_back("0");
    simulation absorbing(with);
    simulation reflecting(without);
    // Long enough for the wave to cross the grid and come back.
    for (int n = 0; n < 450; ++n) {
        absorbing.step();
        reflecting.step();
    }
    EXPECT_GT(reflecting.energy(), 0);
    EXPECT_LT(absorbing.energy(), 0.02 * reflecting.energy());
}

TEST(minimod_physics, stays_bounded_at_the_default_time_step) {
    simulation run({"--grid", "40", "--sponge", "0"});
    double largest = 0;
    for (int n = 0; n < 600; ++n) {
        run.step();
        if (n == 100) {
            largest = run.energy();
        }
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(run.energy(), 10 * largest);
}

// Any split of the planes into calls must give the same bits: the check of the program relies on
// it.
TEST(minimod_kernel, grouping_of_planes_does_not_change_a_bit) {
    simulation whole({"--grid", "37", "29", "51"});
    for (int n = 0; n < 30; ++n) {
        whole.step();
    }
    // One more step from here, in one call and then plane by plane from the back.
    const grid &g = whole.get().part;
    std::vector<float> copy(g.count + 16, 0.0f);
    std::vector<float> other(g.count + 16, 0.0f);
    auto aligned = [](std::vector<float> &v) {
        return reinterpret_cast<float *>((reinterpret_cast<std::uintptr_t>(v.data()) + 63) / 64 *
                                         64);
    };
    float *a = aligned(copy);
    float *b = aligned(other);
    minimod_clear(&g, a);
    minimod_clear(&g, b);
    for (int x = 0; x < g.nx; ++x) {
        for (int y = 0; y < g.ny; ++y) {
            for (int z = 0; z < g.nz; ++z) {
                const std::size_t at =
                    static_cast<std::size_t>(y) * g.pitch + static_cast<std::size_t>(z);
                grid_plane(&g, b, x)[at] = whole.at(x, y, z);
            }
        }
    }
    minimod_step(&g, &whole.get().medium, a, b, 0, g.nx, rows_untried());
    std::vector<float> result(a, a + g.count - 16);
    minimod_clear(&g, a);
    for (int x = g.nx - 1; x >= 0; --x) {
        minimod_step(&g, &whole.get().medium, a, b, x, x + 1, rows_untried());
    }
    EXPECT_TRUE(std::equal(result.begin(), result.end(), a));
    // Nor does the form of the loop.
    for (int form = 0; form < 4; ++form) {
        minimod_clear(&g, a);
        minimod_step(&g, &whole.get().medium, a, b, 0, g.nx,
                     row_form{.whole = form % 2, .fetch = form / 2});
        EXPECT_TRUE(std::equal(result.begin(), result.end(), a)) << "form " << form;
    }
    EXPECT_TRUE(std::any_of(result.begin(), result.end(), [](float v) { return v != 0; }));
}

struct trials {
    std::vector<int> planes_of_form = {0, 0, 0, 0};
    int last_x = 0;
} seen;

/// A machine on which whole rows are slow, and prefetching helps in memory alone.
void try_rows(const model *, float *[2], row_form form, int x_begin, int x_end) {
    seen.planes_of_form[static_cast<std::size_t>(2 * form.whole + form.fetch)] += x_end - x_begin;
    seen.last_x = std::max(seen.last_x, x_end);
    const bool is_cached = x_end - x_begin == 4;
    const bool is_slow = form.whole != 0 || (form.fetch != 0) == is_cached;
    std::this_thread::sleep_for(std::chrono::milliseconds(is_slow ? 12 : 2));
}

TEST(minimod_tune, takes_the_fastest_form_of_memory_and_of_a_cache) {
    model m{};
    m.part.local_nx = 35;
    float *fields[2] = {nullptr, nullptr};
    const tuned_rows tuned = tune_rows(&m, fields, try_rows);
    EXPECT_EQ(tuned.memory.whole, 0);
    EXPECT_EQ(tuned.memory.fetch, 1);
    EXPECT_EQ(tuned.cache.whole, 0);
    EXPECT_EQ(tuned.cache.fetch, 0);
    // Each form computes four parts of 8 planes, and the first 4 planes four times.
    EXPECT_EQ(seen.planes_of_form, (std::vector<int>{48, 48, 48, 48}));
    EXPECT_EQ(seen.last_x, 32);
}

TEST(minimod_tune, too_few_planes_are_not_tried) {
    model m{};
    m.part.local_nx = 15;
    float *fields[2] = {nullptr, nullptr};
    const tuned_rows tuned =
        tune_rows(&m, fields, [](const model *, float *[2], row_form, int, int) { FAIL(); });
    EXPECT_EQ(tuned.memory.whole, rows_untried().whole);
    EXPECT_EQ(tuned.cache.fetch, rows_untried().fetch);
}

TEST(minimod_grid, split_covers_every_plane_once) {
    for (int const nx : {8, 13, 61, 200}) {
        for (int ranks = 1; ranks <= nx / HALO; ++ranks) {
            int next = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const grid g = grid_split(nx, 10, 10, rank, ranks);
                EXPECT_EQ(g.first_x, next);
                EXPECT_GE(g.local_nx, HALO);
                EXPECT_LE(g.local_nx, g.max_nx);
                EXPECT_EQ(g.left_nx,
                          rank > 0 ? grid_split(nx, 10, 10, rank - 1, ranks).local_nx : 0);
                next += g.local_nx;
            }
            EXPECT_EQ(next, nx);
        }
    }
}

} // namespace
