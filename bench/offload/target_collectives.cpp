// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Broadcast and sum over all devices of all ranks, for bench/compare-collectives: in one call
// ("one_call"), and, if a rank has several devices, with a call within each rank and one between
// ranks ("two_phase"). The two are measured in turn. Data is mapped doubles.
#include "bench/collectives.h"

#include <array>
#include <diomp.h>
#include <omp.h>

namespace diomp::bench {
namespace {

void check(int status) {
    if (status != OMPX_SUCCESS) { // with DIOMP_ERRORS=return; otherwise the job has ended
        ompx_abort(1);
    }
}

struct groups {
    ompx_group_t all = nullptr;        ///< every device of every rank
    ompx_group_t intra_rank = nullptr; ///< the devices of this rank
    ompx_group_t inter_rank = nullptr; ///< the first device of each rank
    std::vector<int> devices;
};

groups make_groups() {
    groups made;
    check(ompx_group_create_devices(ompx_group_world, &made.all));
    std::vector<int> by_rank;
    std::vector<int> by_index;
    for (int i = 0; i < ompx_num_rank_devices(); ++i) {
        made.devices.push_back(ompx_rank_device(i));
        by_rank.push_back(ompx_rank_num());
        by_index.push_back(i);
    }
    std::vector<int> const keys(made.devices.size(), 0);
    std::vector<ompx_group_t> results(made.devices.size());
    check(ompx_group_split_endpoints(made.all, by_rank.data(), keys.data(), results.data()));
    made.intra_rank = results.front();
    check(ompx_group_split_endpoints(made.all, by_index.data(), keys.data(), results.data()));
    made.inter_rank = results.front();
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
    /// Fills the source as in collectives.h, with members' numbers in place of ranks, and dst with
    /// NaN. A broadcast has one buffer: there dst is the source at member 0.
    void fill(int first_member, bool is_bcast) {
        std::size_t const count = nbytes_ / sizeof(double);
        for (std::size_t index = 0; index < devices_.size(); ++index) {
            int const member = first_member + static_cast<int>(index);
            double *const to = dst();
            double *const from = src();
            for (std::size_t i = 0; i < count; ++i) {
                from[i] = element(member, 0, i);
                to[i] =
                    is_bcast && member == 0 ? from[i] : std::numeric_limits<double>::quiet_NaN();
            }
#pragma omp target update device(devices_[index]) to(to[0 : count], from[0 : count])
        }
    }
    /// Returns "", or a description of a wrong copy of the result.
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

void rank_barrier() { check(ompx_barrier()); }

/// The library interface that all_ranks_body needs.
struct rank_world {
    void barrier() const { rank_barrier(); }
    double max_over_ranks(double mine) const {
        double largest = 0;
        check(ompx_allreduce(&largest, &mine, 1, OMPX_DOUBLE, OMPX_MAX, ompx_group_world));
        return largest;
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

/// Does the operation as without groups of endpoints: within the rank, between ranks, within the
/// rank.
void call_twice(const collective &what, const arrays &data, std::size_t nbytes,
                const groups &members) {
    std::size_t const count = nbytes / sizeof(double);
    if (what.sums) {
        check(ompx_target_reduce(data.dst(), data.src(), OMPX_GROUP_DEVICES, count, OMPX_DOUBLE,
                                 OMPX_SUM, 0, members.intra_rank));
        check(ompx_target_allreduce(data.dst(), data.dst(), members.devices.front(), count,
                                    OMPX_DOUBLE, OMPX_SUM, members.inter_rank));
    } else {
        check(
            ompx_target_bcast(data.dst(), members.devices.front(), nbytes, 0, members.inter_rank));
    }
    check(ompx_target_bcast(data.dst(), OMPX_GROUP_DEVICES, nbytes, 0, members.intra_rank));
}

void measure_size(const collective &what, std::size_t nbytes, const groups &members,
                  const sampling &how, report &results) {
    rank_world world;
    arrays data(members.devices, nbytes);
    int const num_members = ompx_group_size(members.all);
    std::vector<body> bodies{all_ranks_body(world, [&] { call(what, data, nbytes, members.all); })};
    std::vector<const char *> names{"one_call"};
    if (members.devices.size() > 1) {
        bodies.push_back(all_ranks_body(world, [&] { call_twice(what, data, nbytes, members); }));
        names.push_back("two_phase");
    }
    for (body const &each : bodies) {
        data.fill(ompx_group_rank(members.all), !what.sums);
        rank_barrier();
        each(1);
        if (std::string const wrong = data.error(what, num_members); !wrong.empty()) {
            std::fprintf(stderr, "target_collectives: %s of %zu bytes: %s\n", what.name, nbytes,
                         wrong.c_str());
            ompx_abort(1);
        }
        rank_barrier();
    }
    std::vector<timing> const times = measure(bodies, how);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        results.add({what.name, what.name, names[i], 1, nbytes, times[i]});
    }
}

void measure_all(const options &wanted, report &results) {
    groups members = make_groups();
    for (const collective &what : collectives()) {
        for (std::size_t const size : collective_sizes(wanted)) {
            if (wanted.wants(what.name)) {
                measure_size(what, size, members, wanted.how, results);
            }
        }
    }
    for (ompx_group_t *group : {&members.all, &members.intra_rank, &members.inter_rank}) {
        check(ompx_group_free(group));
    }
}

} // namespace
} // namespace diomp::bench

int main(int argc, char **argv) {
    using namespace diomp::bench;
    options const wanted = parse_selection("Broadcast and sum over the devices of all ranks", argc,
                                           argv, {"bcast", "allreduce"});
    report results({"diomp", "shm", ompx_num_ranks() * ompx_num_rank_devices()},
                   ompx_rank_num() == 0);
    measure_all(wanted, results);
    return results.write_files(wanted.json, wanted.csv) ? 0 : 1;
}
