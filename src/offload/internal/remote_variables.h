// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "base/result.h"
#include "messaging/request.h"
#include "offload/internal/identity.h"
#include "transport/types.h"

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <tuple>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::offload {

class alloc_directory;
struct variable;

/// Asks the owner for the address of its copy of a variable.
struct variable_request {
    messaging::request_header header;
    identity what;
    std::uint32_t name = 0; ///< hash of the symbol name
    std::int32_t device = 0;
    std::int32_t device_index = -1; ///< index of the requester's device among those that it drives
};

struct variable_reply {
    enum class outcome : std::uint32_t { found, no_variable, no_device, no_copy, closed };

    std::uint64_t address = 0;
    std::uint64_t nbytes = 0;
    outcome how = outcome::no_variable;
    std::int32_t device = 0;
    std::uint16_t on_accelerator = 0;
    std::uint16_t is_constant = 0;
};

/// Another rank's copy.
struct remote_copy {
    std::uint64_t address = 0; ///< address, as the owner sees it
    std::int32_t device = 0;   ///< of the owner
    bool on_accelerator = false;
    bool is_constant = false; ///< read-only for its owner
};

/// Other ranks' copies of `declare target` variables. The owner is asked once and the reply is
/// cached, because images stay in place until libomptarget ends; after that the owner rejects
/// transfers. Thread-safe.
class remote_variables {
public:
    remote_variables(transport::handler_id handler, const alloc_directory &directory,
                     messaging::call_service &calls)
        : request_handler_(handler), directory_(directory), calls_(calls) {}

    /// The copy on `owner`'s device `device`, or on its device of the same index as this rank's
    /// device of that number, see alloc_directory::find. Waits for the owner on first use.
    result<remote_copy> locate_copy(world_rank owner, int device, const variable &of);

private:
    using key =
        std::tuple<int, int, std::uint32_t, std::uint64_t>; ///< rank, device, module, offset

    transport::handler_id request_handler_;
    const alloc_directory &directory_;
    messaging::call_service &calls_;
    std::shared_mutex mutex_; ///< leaf lock; guards the next member
    std::map<key, remote_copy> cache_;
};

} // namespace diomp::offload
