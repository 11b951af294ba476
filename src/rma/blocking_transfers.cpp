// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/blocking_transfers.h"

#include "rma/internal/registered_transfers.h"
#include "rma/internal/remote_transfers.h"

#include <array>

namespace diomp::rma {

const char *name(path taken) {
    constexpr std::array<const char *, num_paths> names{
        "self",   "direct",      "cross-memory attach", "messages", "conduit",
        "device", "peer device", "device IPC",          "bounce"};
    return names[static_cast<std::size_t>(taken)];
}

result<path> blocking_transfers::move_unmapped(direction dir, world_rank peer,
                                               const memory::location &location, void *local,
                                               std::size_t nbytes) {
    return remote_.is_remote(peer)
               ? remote_.move(dir, peer, location, local, nbytes)
               : registered_.move(dir, peer, location.remote_address, local, nbytes);
}

} // namespace diomp::rma
