// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A runtime in a world of any number of ranks, of which few are processes: memory of a rank in a
// large job, and the meaning of addresses there.
//
//   diomp-run -n 164 -- runtime_faked_world --ranks 100032 --node 64 --local 64 [--max-kib 4096]
//
// The first --local processes are ranks of node 0; each further one is the first rank of the node
// after, so that rank 0 speaks to (processes - local) peers on other nodes. The other ranks exist
// in the tables only: there are no calls of the whole world. DIOMP_SEGMENT_SIZE and the network are
// those of the environment. Each rank counts the values that it fetches from others: what a start
// needs of other nodes must not grow with the world, except on rank 0, which asks each node once.
#include "base/log.h"
#include "base/version.h"
#include "config/settings.h"
#include "group/group.h"
#include "group/registry.h"
#include "launch/launch.h"
#include "memory/layout.h"
#include "memory/memory.h"
#include "rma/rma.h"
#include "runtime/collective_layer.h"
#include "runtime/job_connection.h"
#include "runtime/runtime.h"
#include "transport/arena.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace diomp;

struct world_shape {
    int num_ranks = 0;
    int per_node = 64;
    int num_local = 2;

    int num_processes = 0;

    // The first ranks are processes: `num_local` on a node, the others alone. The rest fills nodes.
    [[nodiscard]] bool is_process(int rank) const { return rank < num_processes; }
    /// The ranks of a node end before this one; `first` is its first rank.
    [[nodiscard]] int end_of_node(int first) const {
        return first == 0          ? num_local
               : is_process(first) ? first + 1
                                   : std::min(first + per_node, num_ranks);
    }
    [[nodiscard]] int slot_of(int rank) const {
        return rank < num_local ? rank : is_process(rank) ? 0 : (rank - num_processes) % per_node;
    }
};

[[noreturn]] void fail(const std::string &why) {
    std::fprintf(stderr, "faked_world: %s\n", why.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
}

template <typename T>
T demand(result<T> outcome) {
    if (!outcome.ok()) {
        fail(outcome.failure().message() + " [" + outcome.failure().remedy() + "]");
    }
    return outcome.take();
}

void demand_ok(status outcome) {
    if (!outcome) {
        fail(outcome.failure().message() + " [" + outcome.failure().remedy() + "]");
    }
}

void expect(bool holds, const char *what) {
    if (!holds) {
        fail(std::string("not true: ") + what);
    }
}
#define EXPECT(condition) expect(condition, #condition)

/// Presents the processes as some ranks of the large world.
class few_of_many final : public launch::launcher {
public:
    few_of_many(std::unique_ptr<launch::launcher> inner, const world_shape &shape)
        : inner_(std::move(inner)), shape_(shape), info_(inner_->info()) {
        int const rank = info_.rank.value();
        int const first = rank < shape.num_local ? 0 : rank;
        info_.size = shape.num_ranks;
        info_.local = local_rank{rank - first};
        info_.local_size = shape.end_of_node(first) - first;
        info_.local_ranks.clear();
        for (int local = 0; local < info_.local_size; ++local) {
            info_.local_ranks.emplace_back(first + local);
        }
        info_.is_split = true;
    }
    const launch::job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        return inner_->put(key, value);
    }
    result<std::string> get(world_rank owner, std::string_view key) override {
        num_fetched_.fetch_add(1);
        if (key == "node") {
            return fmt::format("{} {}-{}", library_version(), owner.value(),
                               shape_.end_of_node(owner.value()) - 1);
        }
        if (!shape_.is_process(owner.value())) {
            return error(OMPX_ERR_STATE, fmt::format("rank {} is not a process", owner.value()));
        }
        return inner_->get(owner, key);
    }
    status fence() override { return inner_->fence(); }
    status finalize() override { return inner_->finalize(); }
    void abort(int code, std::string_view message) noexcept override {
        inner_->abort(code, message);
    }
    int watch_fd() const override { return inner_->watch_fd(); }
    const char *name() const override { return "faked world"; }

    /// Values that get() was asked for.
    [[nodiscard]] long num_fetched() const { return num_fetched_.load(); }

private:
    std::atomic<long> num_fetched_{0};
    std::unique_ptr<launch::launcher> inner_;
    world_shape shape_;
    launch::job_info info_;
};

/// A start fetches some values of rank 0 and of each neighbour; rank 0 also one of each node.
void check_start_fetches(long num_fetched, const launch::job_info &job, const world_shape &shape) {
    constexpr long of_rank_0 = 16;
    long const nodes = (shape.num_ranks - shape.num_processes) / shape.per_node +
                       shape.num_processes - shape.num_local + 2;
    long const limit = of_rank_0 + 2 * job.local_size + (job.rank.value() == 0 ? nodes : 0);
    if (num_fetched > limit) {
        fail(fmt::format("{} values were fetched at the start, the limit is {}", num_fetched,
                         limit));
    }
}

/// KiB of anonymous and shared memory: the share of this process, as /proc has it.
long resident_kib() {
    std::ifstream file("/proc/self/smaps_rollup");
    long sum = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string key;
        long value = 0;
        fields >> key >> value;
        sum += key == "Pss_Anon:" || key == "Pss_Shmem:" ? value : 0;
    }
    return sum;
}

/// Every rank of the world, also one without a process: addresses are calculated, not looked up.
void check_addresses(runtime::runtime &running, const world_shape &shape, std::byte *own) {
    transport::arena const &arena = running.connection().arena();
    auto const offset = static_cast<std::size_t>(own - running.segment().base());
    EXPECT(arena.num_slots() == shape.per_node);
    EXPECT(arena.shares_slots());
    std::uintptr_t const begin = arena.base();
    for (int rank = shape.num_local; rank < shape.num_ranks; rank += 37) {
        if (rank == running.job().rank.value()) {
            continue;
        }
        world_rank const peer{rank};
        auto const place = static_cast<std::uintptr_t>(shape.slot_of(rank));
        auto const there = begin + place * arena.slot_bytes() + memory::internal_bytes + offset;
        // The own symmetric address, and the peer's own address of the same.
        for (std::uintptr_t const named : {reinterpret_cast<std::uintptr_t>(own), there}) {
            auto const found =
                demand(running.space().locate(peer, reinterpret_cast<const void *>(named), 8));
            EXPECT(found.direct == nullptr);
            EXPECT(found.remote_address == there);
        }
        // Another part of the peer's memory, in which this rank may have nothing.
        auto const end = there - offset + running.segment().size_bytes() - 8;
        auto const found =
            demand(running.space().locate(peer, reinterpret_cast<const void *>(end), 8));
        EXPECT(found.remote_address == end);
        // The slot of another place.
        auto const other =
            begin + (place + 1) % static_cast<std::uintptr_t>(shape.per_node) * arena.slot_bytes() +
            memory::internal_bytes + running.segment().size_bytes() - 8;
        bool const is_own = running.space().in_arena(reinterpret_cast<void *>(other)) &&
                            running.space().own_offset(reinterpret_cast<void *>(other));
        EXPECT(is_own ||
               !running.space().locate(peer, reinterpret_cast<const void *>(other), 8).ok());
    }
}

/// A group of the processes; with few, since groups made from lists connect each pair of members.
void make_group(runtime::runtime &running, const std::vector<int> &ranks) {
    constexpr std::size_t max_members = 16;
    if (ranks.size() > max_members) {
        return;
    }
    group::group_registry &groups = running.collectives().groups();
    group::group &all = *demand(groups.find(demand(groups.create(ranks))));
    auto const lock = all.lock_calls();
    sync::call_signature call;
    call.what = sync::operation::barrier;
    demand_ok(all.arrive_and_wait(call));
}

struct shared_words {
    std::uint64_t from_each[512];
    std::byte *local;
};

/// Puts and gets between the processes.
void transfer_to_all(runtime::runtime &running, const std::vector<int> &ranks, shared_words *own) {
    auto const fence = [&] { demand_ok(running.connection().launcher().fence()); };
    auto const self = static_cast<std::size_t>(
        std::ranges::find(ranks, running.job().rank.value()) - ranks.begin());
    std::uint64_t mine = 0;
    own->local =
        running.segment().base() + demand(running.segment().allocate_local(8 + 64 * self, 64));
    fence();
    // The first process writes to all, the others to the next few.
    std::size_t const num = ranks.size();
    auto const reach = [&](std::size_t member) {
        return member == 0 ? num : std::min<std::size_t>(num, 5);
    };
    for (std::size_t step = 0; step < reach(self); ++step) {
        world_rank const peer{ranks[(self + step) % num]};
        std::uint64_t const value = self + 1;
        demand(running.transfers().put(peer, &own->from_each[self], &value, sizeof(value)));
        std::byte *local = nullptr;
        demand(running.transfers().get(peer, &own->local, &local, sizeof(local)));
        if (step == 1 % num) {
            // The peer's own address, which may lie in the own slot.
            demand(running.transfers().put(peer, local, &value, sizeof(value)));
        }
    }
    demand_ok(running.transfers().fence());
    fence();
    for (std::size_t member = 0; member < ranks.size(); ++member) {
        bool const has_written = (self + num - member) % num < reach(member);
        EXPECT(own->from_each[member] == (has_written ? member + 1 : 0));
    }
    std::memcpy(&mine, own->local, sizeof(mine));
    EXPECT(mine == (self + ranks.size() - 1) % ranks.size() + 1);
    fence();
}

int number_after(int argc, char **argv, const std::string &option, int otherwise) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (argv[i] == option) {
            return std::atoi(argv[i + 1]);
        }
    }
    return otherwise;
}

} // namespace

int main(int argc, char **argv) {
    world_shape shape;
    shape.num_ranks = number_after(argc, argv, "--ranks", 100'032);
    shape.per_node = number_after(argc, argv, "--node", 64);
    shape.num_local = number_after(argc, argv, "--local", 2);
    long const max_kib = number_after(argc, argv, "--max-kib", 0);
    std::vector<std::string> unknown;
    settings const values = demand(read_settings(unknown));
    auto real = demand(launch::connect());
    int const rank = real->info().rank.value();
    shape.num_processes = real->info().size;
    set_log(values.runtime.log, fmt::format("[{}] ", rank));
    EXPECT(shape.num_local <= shape.num_processes && shape.num_processes < shape.num_ranks);
    EXPECT(static_cast<std::size_t>(shape.num_processes) <= std::size(shared_words{}.from_each));

    auto launcher = std::make_unique<few_of_many>(std::move(real), shape);
    few_of_many const &fetches = *launcher;
    auto running = demand(runtime::runtime::start(values, std::move(launcher)));
    long const fetched_at_start = fetches.num_fetched();
    check_start_fetches(fetched_at_start, running->job(), shape);
    auto *const own = reinterpret_cast<shared_words *>(
        running->segment().base() +
        demand(running->segment().allocate_symmetric(sizeof(shared_words), 64)));
    long const at_start = resident_kib();
    check_addresses(*running, shape, reinterpret_cast<std::byte *>(own));
    std::vector<int> ranks(static_cast<std::size_t>(shape.num_processes));
    std::iota(ranks.begin(), ranks.end(), 0);
    make_group(*running, ranks);
    transfer_to_all(*running, ranks, own);
    long const after = resident_kib();
    long const fetched_later = fetches.num_fetched() - fetched_at_start;
    std::printf("rank %d: resident_kib %ld after the start, %ld with %d peers; fetched %ld values "
                "at the start, %ld since\n",
                rank, at_start, after, shape.num_processes - 1, fetched_at_start, fetched_later);
    std::fflush(stdout);
    constexpr long per_peer = 4;
    EXPECT(fetched_later <= per_peer * (shape.num_processes - 1));
    if (max_kib > 0 && after > max_kib) {
        fail(fmt::format("{} KiB are resident, the limit is {}", after, max_kib));
    }
    demand_ok(running->connection().close());
    return 0;
}
