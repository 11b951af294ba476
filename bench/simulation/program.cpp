// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-sim: collectives of the library, or of SMPI, on a simulated machine. One line of JSON for
// each collective and size. docs/simulation.md
#include "base/command_line.h"
#include "base/tool_main.h"
#include "measured.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>
#include <xbt/log.h>

// SMPI's settings exist after this call, which no header of SimGrid 3.32 declares, and SMPI_init
// reads them.
extern "C" void smpi_init_options();

namespace {

using namespace diomp::simulation;
namespace s4u = simgrid::s4u;

struct arguments {
    machine hardware;
    std::string library = "diomp";
    std::vector<std::string> collectives{"barrier", "bcast", "allreduce"};
    std::vector<std::size_t> sizes{8};
    bool all_ranks = false;
    bool in_arena = false;
    diomp::coll::slicing_options slicing;
    std::optional<std::size_t> halvings; ///< instead of the choice of the model
    bool overlaps = false;
    int repeats = 1;
    bool verifies = false;
    bool prints_platform = false;
};

void add_machine_options(CLI::App &app, machine &into) {
    app.add_option("--topology", into.topology, "the network")
        ->check(CLI::IsMember({"fat-tree", "dragonfly"}))
        ->capture_default_str();
    app.add_option("--platform", into.platform_file,
                   "SimGrid's platform file, instead of a topology")
        ->check(CLI::ExistingFile);
    app.add_option("--nodes", into.num_nodes, "nodes")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--per-node", into.ranks_per_node, "ranks on each node")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    auto const seconds = diomp::number_range(0.0, 1.0);
    auto const speed = diomp::number_range(1.0, 1e15);
    app.add_option("--bandwidth", into.link_bandwidth, "of a link, bytes per second")->check(speed);
    app.add_option("--latency", into.link_latency_s, "of a link, seconds")->check(seconds);
    app.add_option("--overhead", into.overhead_s, "of sending or receiving a message, seconds")
        ->check(seconds);
    app.add_option("--overhead-per-byte", into.overhead_s_per_byte, "in addition, seconds")
        ->check(seconds);
    app.add_option("--copy-bandwidth", into.copy_bandwidth, "of a core on a node, bytes per second")
        ->check(speed);
    app.add_option("--loopback-latency", into.loopback_latency_s,
                   "of SMPI's messages on a node, seconds")
        ->check(seconds);
    app.add_option("--flag", into.flag_s, "until a core sees another one's store, seconds")
        ->check(seconds);
    app.add_option("--line", into.line_s, "until it has read one more line, seconds")
        ->check(seconds);
}

void add_options(CLI::App &app, arguments &into) {
    add_machine_options(app, into.hardware);
    app.add_option("--library", into.library, "whose collectives")
        ->check(CLI::IsMember({"diomp", "ompi", "mpich"}))
        ->capture_default_str();
    app.add_option("--collectives", into.collectives,
                   "barrier, bcast, allreduce, allgather, alltoall")
        ->delimiter(',')
        ->check(CLI::IsMember({"barrier", "bcast", "allreduce", "allgather", "alltoall"}));
    app.add_option("--sizes", into.sizes, "bytes, multiples of 8, such as 8,64KiB")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false));
    app.add_flag("--all-ranks", into.all_ranks,
                 "simulate each rank of a node; else one stands for all");
    app.add_flag("--global", into.in_arena,
                 "the buffers are global memory, which ranks of a node read without a copy");
    app.add_option("--sliced-members", into.slicing.min_members,
                   "members of a node from which allreduces may be sliced")
        ->check(CLI::Range(2, 1 << 20));
    app.add_option("--halvings", into.halvings,
                   "slice each allreduce, with so many rounds that halve, instead of by the model");
    app.add_flag("--overlap", into.overlaps, "with --halvings: exchanges of chunks overlap");
    app.add_option("--max-chunk", into.slicing.max_chunk_bytes, "of an operand, bytes")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--repeat", into.repeats, "timed calls; the last one counts")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--verify", into.verifies, "move the data and compare the results");
    app.add_flag("--print-platform", into.prints_platform, "print the platform file and end");
}

std::vector<trial> trials_of(const arguments &from) {
    std::vector<trial> made;
    for (const std::string &collective : from.collectives) {
        if (collective == "barrier") {
            made.push_back({collective, 0});
            continue;
        }
        for (std::size_t const nbytes : from.sizes) {
            made.push_back({collective, nbytes});
        }
    }
    return made;
}

void check(const arguments &given) {
    bool const has_alltoall =
        std::ranges::find(given.collectives, "alltoall") != given.collectives.end();
    if (given.library == "diomp" && has_alltoall && given.hardware.ranks_per_node > 1 &&
        !given.all_ranks) {
        throw std::runtime_error("all ranks send in an alltoall: pass --all-ranks");
    }
    if (given.library != "diomp" && given.sizes.size() > 1) {
        throw std::runtime_error("SMPI's algorithms are chosen for one size: pass one to --sizes");
    }
    for (std::size_t const nbytes : given.sizes) {
        if (nbytes % sizeof(double) != 0) {
            throw std::runtime_error("--sizes takes multiples of 8 bytes");
        }
        // What a collective moves is a multiple of it, and each rank may have it in memory.
        constexpr std::size_t max_bytes = std::size_t{1} << 40;
        auto const ranks = static_cast<std::size_t>(given.hardware.num_nodes) *
                           static_cast<std::size_t>(given.hardware.ranks_per_node);
        auto const memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        if (nbytes > max_bytes / ranks || (given.verifies && nbytes > memory / ranks / 2)) {
            throw std::runtime_error(
                fmt::format("--sizes: {} ranks cannot have {} bytes each{}", ranks, nbytes,
                            given.verifies ? " in the memory of this machine" : ""));
        }
    }
}

/// Loads the platform from a file of its own, since SimGrid reads files only.
void load_platform(s4u::Engine &engine, const machine &hardware) {
    if (!hardware.platform_file.empty()) {
        engine.load_platform(hardware.platform_file);
        return;
    }
    std::string name = fmt::format("{}/diomp-sim-{}.xml", P_tmpdir, ::getpid());
    std::ofstream(name) << platform_xml(hardware);
    engine.load_platform(name);
    ::unlink(name.c_str());
}

std::vector<s4u::Host *> nodes_of(s4u::Engine &engine, const machine &hardware) {
    std::vector<s4u::Host *> hosts;
    for (int node = 0; node < hardware.num_nodes; ++node) {
        hosts.push_back(engine.host_by_name(fmt::format("node-{}", node)));
    }
    return hosts;
}

// SMPI's selections for a bcast first exchange the nodes of all ranks, with a number of messages
// that grows with the square of the ranks' and needs data. These are the algorithms that Open MPI's
// and MPICH's rules come to.
std::string bcast_algorithm(const std::string &library, std::size_t nbytes) {
    if (library == "ompi") {
        return nbytes < 2048     ? "binomial_tree"
               : nbytes < 370728 ? "ompi_split_bintree"
                                 : "ompi_pipeline";
    }
    return nbytes < 12288    ? "binomial_tree"
           : nbytes < 524288 ? "scatter_rdb_allgather"
                             : "scatter_LR_allgather";
}

// MPICH's choice for an allreduce of a predefined operator, for the same reason.
std::string allreduce_algorithm(std::size_t nbytes) { return nbytes > 2048 ? "rab_rdb" : "rdb"; }

void configure(const arguments &given) {
    xbt_log_control_set("root.thres:error");
    using engine = s4u::Engine;
    for (const char *each : {"network/model:CM02", "network/weight-S:0", "network/TCP-gamma:0",
                             "network/crosstraffic:0", "contexts/stack-size:128",
                             "contexts/guard-size:0", "surf/precision:1e-10"}) {
        engine::set_config(each);
    }
    if (given.library == "diomp") {
        engine::set_config("network/latency-factor:0"); // port.cpp has the latencies
    } else {
        smpi_init_options();
        std::string const overhead = smpi_overhead(given.hardware);
        for (const char *each : {"smpi/os", "smpi/ois", "smpi/or"}) {
            engine::set_config(fmt::format("{}:{}", each, overhead));
        }
        engine::set_config("smpi/simulate-computation:no");
        engine::set_config("smpi/async-small-thresh:65536");
        engine::set_config("smpi/coll-selector:" + given.library);
        engine::set_config("smpi/bcast:" + bcast_algorithm(given.library, given.sizes.front()));
        if (given.library == "mpich") {
            engine::set_config("smpi/allreduce:" + allreduce_algorithm(given.sizes.front()));
        }
        SMPI_init();
    }
}

void run(const arguments &given, s4u::Engine &engine) {
    check(given);
    configure(given);
    load_platform(engine, given.hardware);
    auto const hosts = nodes_of(engine, given.hardware);
    auto const print = [&](const trial &what, const measured &found) {
        fmt::print(
            R"({{"library": "{}", "topology": "{}", "nodes": {}, "ranks": {}, "collective": )"
            R"("{}", "bytes": {}, "seconds": {:.9g}, "max_messages": {}, "max_bytes": {}, )"
            R"("all_messages": {}}})"
            "\n",
            given.library, given.hardware.topology, given.hardware.num_nodes,
            given.hardware.num_ranks(), what.collective, what.nbytes, found.seconds,
            found.max_messages, found.max_bytes, found.all_messages);
        std::fflush(stdout);
    };
    if (given.library != "diomp") {
        measure_smpi(given.hardware, hosts, trials_of(given), given.repeats, print);
        SMPI_finalize();
        return;
    }
    job ranks({.hardware = given.hardware,
               .all_ranks = given.all_ranks && given.hardware.ranks_per_node > 1,
               .slicing = given.slicing,
               .in_arena = given.in_arena,
               .moves_data = given.verifies},
              hosts);
    measure_diomp(ranks, trials_of(given), given.repeats, given.verifies, print);
}

} // namespace

int main(int argc, char **argv) {
    int num_engine_words = 1; // the program's name: SimGrid would print its own --help
    s4u::Engine engine(&num_engine_words, argv);
    arguments given;
    CLI::App app("Collectives on a simulated machine", "diomp-sim");
    add_options(app, given);
    if (auto const status = diomp::parse_command_line(app, EXIT_FAILURE, argc, argv)) {
        return *status;
    }
    if (given.halvings) {
        given.slicing.forced = {.num_halvings = *given.halvings, .has_lag = given.overlaps};
    }
    if (given.prints_platform) {
        fmt::print("{}", platform_xml(given.hardware));
        return diomp::exit_status("diomp-sim", 0);
    }
    try {
        run(given, engine);
    } catch (const std::exception &failure) {
        fmt::print(stderr, "diomp-sim: {}\n", failure.what());
        return 1;
    }
    return diomp::exit_status("diomp-sim", 0);
}
