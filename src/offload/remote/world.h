// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The world of a client and its sessions: an address space like that of a job of ranks, with the
// client as rank 0 and a session per device behind it. The control connections are its launcher.
//
// Every rank counts as a node of its own, so all data goes through the network conduit. A device's
// memory is its rank's slot in the window: a device address means the same in the whole world, and
// nothing of the client's has one.
#pragma once

#include "conduit/conduit.h"
#include "conduit/engine.h"
#include "conduit/window.h"
#include "launch/launch.h"
#include "offload/remote/control.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::remote {

/// Takes what a session prints while it starts: its place in the hub's list, and the frame.
using output_sink = std::function<void(std::size_t session, std::string_view packet)>;

/// Where the ranks of a world are: nothing listens for other hosts if there are none.
enum class spread : bool { one_host, several_hosts };

/// Rank 0's launcher: the sessions' connections in the order of their ranks, from 1 on.
std::unique_ptr<launch::launcher> make_hub(std::vector<control_link *> sessions, spread over,
                                           double timeout_s, output_sink on_output = {});
/// A session's launcher.
std::unique_ptr<launch::launcher> make_member(control_link &client, int rank, int size, spread over,
                                              double timeout_s);

struct world_options {
    std::string conduit = "tcp";
    std::size_t memory_bytes = 0; ///< of the largest device; rank 0's holds
    int spin_count = 2000;
    double dead_peer_timeout_s = 30;
    bool encrypts_data = false; ///< of all ranks, or of none
    /// As conduit_options::device_memory; what is "off" at rank 0 is off.
    std::string network_device_memory = "auto";
    /// Of this rank's device where that is not its slot.
    std::optional<conduit::memory_kind> device_memory;
};

/// Messages of the world. The same handlers on all ranks; what nobody sends to a rank may be empty
/// there: a client takes replies only, a session all but those.
struct world_handlers {
    conduit::handler batch;
    conduit::handler reply;
    conduit::handler copy;   ///< peer_copy
    conduit::handler copied; ///< its answer
};

class world {
public:
    /// Collective. Blocks.
    static result<std::unique_ptr<world>> create(std::unique_ptr<launch::launcher> launcher,
                                                 const world_options &options,
                                                 world_handlers handlers,
                                                 const conduit::failure_sink &on_failure);
    ~world();
    world(const world &) = delete;
    world &operator=(const world &) = delete;

    [[nodiscard]] conduit::engine &engine() { return *engine_; }
    [[nodiscard]] conduit::conduit &conduit() { return *conduit_; }
    [[nodiscard]] const conduit::window &window() const { return *window_; }
    [[nodiscard]] world_rank rank() const { return launcher_->info().rank; }
    [[nodiscard]] int size() const { return launcher_->info().size; }
    [[nodiscard]] std::uint64_t memory_of(world_rank owner) const {
        return reinterpret_cast<std::uint64_t>(window_->slot(owner));
    }

    /// How the network names memory of a rank's device that is not its slot; nothing: there is none
    /// that it reads and writes.
    [[nodiscard]] std::optional<conduit::memory_kind> device_memory(world_rank owner) const {
        return device_memory_[owner.index()];
    }

    static constexpr conduit::handler_id batch_handler = 0;
    static constexpr conduit::handler_id reply_handler = 1;
    static constexpr conduit::handler_id copy_handler = 2;
    static constexpr conduit::handler_id copied_handler = 3;

private:
    world() = default;
    void add_handlers(world_handlers handlers);
    status publish_device_memory(const world_options &options);
    status learn_device_memory();

    std::unique_ptr<launch::launcher> launcher_;
    std::unique_ptr<conduit::window> window_;
    std::unique_ptr<conduit::conduit> conduit_;
    std::unique_ptr<conduit::engine> engine_;
    std::vector<std::optional<conduit::memory_kind>> device_memory_; ///< [rank]
};

} // namespace diomp::offload::remote
