// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Broadcast and sum over all devices of all ranks, for bench/compare-collectives: in one call
// ("one_call"), and, where a rank has several devices, with a call inside each rank and one across
// ranks ("two_phase"). The two are measured in turn. Data is mapped doubles.
#include "bench/collectives.h"

#include <array>
#include <diomp.h>
#include <omp.h>

namespace diomp::bench {
namespace {

void check(int status) {
    if (status != OMPX_SUCCESS) { // with DIOMP_ERRORS=return; else the job has ended
        ompx_abort(1);
    }
}

struct groups {
    ompx_group_t all = nullptr;    ///< every device of every rank
    ompx_group_t inside = nullptr; ///< the devices of this rank
    ompx_group_t across = nullptr; ///< this rank's first device and those of the others
    std::vector<int> devices;
};

groups make_groups() {
    groups made;
    check(ompx_group_create_devices(ompx_group_world, &made.all));
    std::vector<int> by_rank;
    std::vector<int> by_place;
    for (int i = 0; i < ompx_get_num_rank_devices(); ++i) {
        made.devices.push_back(ompx_get_rank_device(i));
        by_rank.push_back(ompx_get_rank_num());
        by_place.push_back(i);
    }
    std::vector<int> const keys(made.devices.size(), 0);
    std::vector<ompx_group_t> results(made.devices.size());
    check(ompx_group_split_endpoints(made.all, by_rank.data(), keys.data(), results.data()));
    made.inside = results.front();
    check(ompx_group_split_endpoints(made.all, by_place.data(), keys.data(), results.data()));
    made.across = results.front();
    return made;
}

/// Two arrays with a copy on each device of the rank.
class arrays {
public:
    arrays(const std::vector<int> &devices, std::size_t nbytes)
        : devices_(devices), nbytes_(nbytes), dst_(private_buffer(nbytes)),
          src_(private_buffer(nbytes)) {
        char *const to = dst_.get();
        char *const from = src_.get();
        for (int const device : devices_) {
#pragma omp target enter data device(device) map(to : to[0 : nbytes], from[0 : nbytes])
        }
    }
    ~arrays() {
        char *const to = dst_.get();
        char *const from = src_.get();
        std::size_t const nbytes = nbytes_;
        for (int const device : devices_) {
#pragma omp target exit data device(device) map(release : to[0 : nbytes], from[0 : nbytes])
        }
    }
    arrays(const arrays &) = delete;
    arrays &operator=(const arrays &) = delete;

    [[nodiscard]] double *dst() const { return reinterpret_cast<double *>(dst_.get()); }
    [[nodiscard]] double *src() const { return reinterpret_cast<double *>(src_.get()); }
    /// The source as collectives.h has it, the numbers of members in place of ranks; dst is NaN.
    /// Of a broadcast, which has one buffer, dst is the source at member 0.
    void fill(int first_member, bool is_bcast) {
        std::size_t const count = nbytes_ / sizeof(double);
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            int const member = first_member + static_cast<int>(place);
            double *const to = dst();
            double *const from = src();
            for (std::size_t i = 0; i < count; ++i) {
                from[i] = element(member, 0, i);
                to[i] =
                    is_bcast && member == 0 ? from[i] : std::numeric_limits<double>::quiet_NaN();
            }
#pragma omp target update device(devices_[place]) to(to[0 : count], from[0 : count])
        }
    }
    /// "" or where a copy of the result is wrong.
    std::string error(const collective &what, int num_members) {
        std::size_t const count = nbytes_ / sizeof(double);
        double *const to = dst();
        for (int const device : devices_) {
#pragma omp target update device(device) from(to[0 : count])
            std::string found = result_error(what, to, 0, num_members, count);
            if (!found.empty()) {
                return found + " on device " + std::to_string(device);
            }
        }
        return {};
    }

private:
    const std::vector<int> &devices_;
    std::size_t nbytes_;
    buffer dst_;
    buffer src_;
};

void barrier_of_ranks() { check(ompx_barrier()); }

/// All ranks start a sample together, and the slowest counts.
struct ranks_together {
    void barrier() const { barrier_of_ranks(); }
    double max_over_ranks(double mine) const {
        double most = 0;
        check(ompx_allreduce(&most, &mine, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world));
        return most;
    }
};

void call(const collective &what, const arrays &data, std::size_t nbytes, ompx_group_t group) {
    if (what.sums) {
        check(ompx_target_allreduce(data.dst(), data.src(), OMPX_GROUP_DEVICES,
                                    nbytes / sizeof(double), OMPX_DOUBLE, OMPX_SUM, group));
    } else {
        check(ompx_target_bcast(data.dst(), OMPX_GROUP_DEVICES, nbytes, 0, group));
    }
}

/// What a program does without groups of endpoints: inside the rank, across, inside.
void call_twice(const collective &what, const arrays &data, std::size_t nbytes,
                const groups &over) {
    std::size_t const count = nbytes / sizeof(double);
    if (what.sums) {
        check(ompx_target_reduce(data.dst(), data.src(), OMPX_GROUP_DEVICES, count, OMPX_DOUBLE,
                                 OMPX_SUM, 0, over.inside));
        check(ompx_target_allreduce(data.dst(), data.dst(), over.devices.front(), count,
                                    OMPX_DOUBLE, OMPX_SUM, over.across));
    } else {
        check(ompx_target_bcast(data.dst(), over.devices.front(), nbytes, 0, over.across));
    }
    check(ompx_target_bcast(data.dst(), OMPX_GROUP_DEVICES, nbytes, 0, over.inside));
}

void measure_size(const collective &what, std::size_t nbytes, const groups &over,
                  const sampling &how, report &results) {
    ranks_together together_with;
    arrays data(over.devices, nbytes);
    int const num_members = ompx_group_size(over.all);
    std::vector<body> bodies{together(together_with, [&] { call(what, data, nbytes, over.all); })};
    std::vector<const char *> names{"one_call"};
    if (over.devices.size() > 1) {
        bodies.push_back(together(together_with, [&] { call_twice(what, data, nbytes, over); }));
        names.push_back("two_phase");
    }
    for (body const &each : bodies) {
        data.fill(ompx_group_rank(over.all), !what.sums);
        barrier_of_ranks();
        each(1);
        if (std::string const wrong = data.error(what, num_members); !wrong.empty()) {
            std::fprintf(stderr, "target_collectives: %s of %zu bytes: %s\n", what.name, nbytes,
                         wrong.c_str());
            ompx_abort(1);
        }
        barrier_of_ranks();
    }
    std::vector<timing> const times = measure(bodies, how);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        results.add({what.name, what.name, names[i], 1, nbytes, times[i]});
    }
}

void measure_all(const options &wanted, report &results) {
    groups over = make_groups();
    for (const collective &what : collectives()) {
        for (std::size_t const size : collective_sizes(wanted)) {
            if (wanted.wants(what.name)) {
                measure_size(what, size, over, wanted.how, results);
            }
        }
    }
    for (ompx_group_t *group : {&over.all, &over.inside, &over.across}) {
        check(ompx_group_free(group));
    }
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted = parse_selection("Broadcast and sum over the devices of all ranks", argc,
                                           argv, {"bcast", "allreduce"});
    report results({"diomp", "shm", ompx_get_num_ranks() * ompx_get_num_rank_devices()},
                   ompx_get_rank_num() == 0);
    measure_all(wanted, results);
    return results.write_files(wanted.json, wanted.csv) ? 0 : 1;
}
