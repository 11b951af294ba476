// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "measured.h"

#include <algorithm>
#include <limits>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <string>

namespace diomp::simulation {
namespace {

namespace s4u = simgrid::s4u;

constexpr const char *instance = "smpi";

/// Of all ranks: messages of ranks that replay carry no data, but some algorithms copy blocks.
struct shared_buffers {
    reserved_memory src;
    reserved_memory dst;
};

std::size_t largest_of(const std::vector<trial> &trials) {
    std::size_t most = 0;
    for (const trial &each : trials) {
        most = std::max(most, each.nbytes);
    }
    return most;
}

void call(const trial &what, const shared_buffers &buffers) {
    auto const count = static_cast<int>(what.nbytes);
    void *const from = buffers.src.data();
    void *const to = buffers.dst.data();
    if (what.collective == "barrier") {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (what.collective == "bcast") {
        MPI_Bcast(to, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else if (what.collective == "allreduce") {
        MPI_Allreduce(from, to, count / static_cast<int>(sizeof(double)), MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
    } else if (what.collective == "allgather") {
        MPI_Allgather(from, count, MPI_BYTE, to, count, MPI_BYTE, MPI_COMM_WORLD);
    } else {
        MPI_Alltoall(from, count, MPI_BYTE, to, count, MPI_BYTE, MPI_COMM_WORLD);
    }
}

} // namespace

void measure_smpi(const machine &hardware, std::vector<s4u::Host *> hosts,
                  const std::vector<trial> &trials, int repeats, const result_sink &sink) {
    int const num_ranks = hardware.num_ranks();
    SMPI_app_instance_register(instance, nullptr, num_ranks);
    s4u::BarrierPtr const together = s4u::Barrier::create(static_cast<unsigned>(num_ranks));
    std::size_t const buffer_bytes =
        std::max<std::size_t>(4096, largest_of(trials) * static_cast<std::size_t>(num_ranks));
    shared_buffers const buffers{reserved_memory(buffer_bytes), reserved_memory(buffer_bytes)};
    double begin = 0;
    double end = 0;
    auto const body = [&](int rank) {
        smpi_replay_init(instance, rank, 0);
        for (const trial &each : trials) {
            for (int i = 0; i <= repeats; ++i) {
                together->wait();
                begin = s4u::Engine::get_clock();
                end = begin;
                call(each, buffers);
                end = std::max(end, s4u::Engine::get_clock());
                together->wait();
                if (rank == 0 && i == repeats) {
                    sink(each, {.seconds = end - begin});
                }
            }
        }
        MPI_Finalize();
    };
    for (int rank = 0; rank < num_ranks; ++rank) {
        auto const node = static_cast<std::size_t>(rank / hardware.ranks_per_node);
        auto const actor = s4u::Actor::create(std::to_string(rank), hosts[node], body, rank);
        actor->set_property("instance_id", instance);
        actor->set_property("rank", std::to_string(rank));
    }
    s4u::Engine::get_instance()->run();
}

} // namespace diomp::simulation
