// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The UCX context of this process, and where other ranks find its addresses.
#pragma once

#include "conduit/conduit.h"
#include "conduit/device_scopes.h"
#include "conduit/ucx/library.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace diomp::conduit::ucx {

/// What a rank tells the others about itself.
struct peer_card {
    std::string host;
    std::vector<std::byte> address;    ///< of its receiving worker
    std::vector<std::byte> remote_key; ///< of its segment; empty if that is not registered
};

class context {
public:
    static result<std::unique_ptr<context>> create(launch::launcher &launcher, const window &window,
                                                   const conduit_options &options);
    ~context();
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    /// Publishes what peers need to reach this rank. An error if ranks differ in how they do atomic
    /// operations, or cannot do them as they were told. Collective.
    status publish(ucp_worker_h worker);
    /// What a peer has published. May ask the launcher; any thread.
    result<peer_card> fetch(world_rank peer);

    [[nodiscard]] const library &ucx() const { return *library_; }
    [[nodiscard]] ucp_context_h handle() const { return handle_; }
    [[nodiscard]] launch::launcher &launcher() const { return launcher_; }
    [[nodiscard]] const conduit_options &options() const { return options_; }
    [[nodiscard]] world_rank self() const { return launcher_.info().rank; }
    [[nodiscard]] int num_ranks() const { return launcher_.info().size; }

    /// Whether transfers may be UCX's puts and gets, and why not.
    [[nodiscard]] bool has_registered_segment() const { return segment_ != nullptr; }

    /// As conduit::reaches.
    [[nodiscard]] bool reaches(memory_kind kind) const {
        return kind == memory_kind::host ||
               device_types_[static_cast<std::size_t>(kind)].has_value();
    }
    /// UCX's name for memory that it reaches.
    [[nodiscard]] ucs_memory_type_t type_of(memory_kind kind) const {
        return device_types_[static_cast<std::size_t>(kind)].value_or(UCS_MEMORY_TYPE_HOST);
    }
    [[nodiscard]] device_scopes &scopes() { return scopes_; }

private:
    /// Lets networks read and write this rank's segment by themselves, where that can be had.
    void register_segment(const window &window);
    void learn_device_memory();
    /// In words that are the same where UCX does them in the same way.
    [[nodiscard]] std::string way_of_atomics() const;
    status check_atomics();

    context(launch::launcher &launcher, const conduit_options &options)
        : launcher_(launcher), options_(options) {}

    launch::launcher &launcher_;
    std::mutex launcher_mutex_; ///< a launcher serves one thread at a time
    conduit_options options_;
    const library *library_ = nullptr;
    ucp_context_h handle_ = nullptr;
    ucp_mem_h segment_ = nullptr;
    std::array<std::optional<ucs_memory_type_t>, 3> device_types_; ///< [memory_kind]
    device_scopes scopes_;
};

} // namespace diomp::conduit::ucx
