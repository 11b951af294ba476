// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Many ranks of the library in one process: an engine, a workspace and the world's group for each,
// on a simulated network.
#pragma once

#include "coll/collective.h"
#include "coll/network_costs.h"
#include "group/group.h"
#include "group/registry.h"
#include "group/segment_workspace.h"
#include "messaging/engine.h"
#include "network.h"
#include "transport/conduit.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace diomp::simulation {

/// Zeroed memory that is committed on first touch.
class reserved_memory {
public:
    explicit reserved_memory(std::size_t nbytes);
    ~reserved_memory();
    reserved_memory(const reserved_memory &) = delete;
    reserved_memory &operator=(const reserved_memory &) = delete;

    [[nodiscard]] std::byte *data() const { return data_; }
    [[nodiscard]] std::size_t nbytes() const { return nbytes_; }

private:
    std::size_t nbytes_;
    std::byte *data_;
};

/// The runtime's part of a rank's slot: blocks are never freed.
class slot_workspace final : public group::workspace {
public:
    explicit slot_workspace(std::size_t nbytes) : nbytes_(nbytes) {}
    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t min_free_bytes) override;
    void release(std::uint64_t /*slot_offset*/) override {}
    /// The buffers of calls count as global memory, so that large messages need no copy.
    [[nodiscard]] bool contains(std::span<const std::byte> /*range*/) const override {
        return true;
    }

private:
    std::size_t nbytes_;
    std::size_t used_ = 0;
};

struct job_options {
    machine hardware;
    bool all_ranks = false; ///< else one rank of each node stands for all of it
    coll::slicing_options slicing;
    bool in_arena = false; ///< the program's buffers are global memory, which others on a node read
    bool moves_data = false; ///< all messages carry their data; else long ones only its size

    [[nodiscard]] int simulated_per_node() const { return all_ranks ? hardware.ranks_per_node : 1; }
};

class job {
public:
    /// `hosts`: [node].
    job(const job_options &options, std::span<simgrid::s4u::Host *const> hosts);
    ~job();
    job(const job &) = delete;
    job &operator=(const job &) = delete;

    [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
    [[nodiscard]] const job_options &options() const { return options_; }
    [[nodiscard]] port &port_of(int rank) { return fabric_.of(world_rank(rank)); }
    [[nodiscard]] group::group &world_of(int rank) {
        return ranks_[static_cast<std::size_t>(rank)].registry->world();
    }
    /// In the actor of this rank.
    status run(int rank, const coll::request &call) {
        return collectives_.run(world_of(rank), call);
    }

private:
    struct rank {
        std::unique_ptr<transport::conduit> conduit;
        std::unique_ptr<messaging::engine> engine;
        std::unique_ptr<slot_workspace> space;
        std::unique_ptr<group::group_registry> registry;
    };

    void add_rank(int number, const group::node_map &nodes);

    job_options options_;
    fabric fabric_;
    std::vector<std::int32_t> node_of_; ///< [rank]
    reserved_memory slots_;
    coll::network_costs costs_; ///< of the machine
    coll::collectives collectives_;
    std::vector<rank> ranks_;
};

} // namespace diomp::simulation
