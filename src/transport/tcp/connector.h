// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections to other ranks that are being opened.
#pragma once

#include "base/lazy_array.h"
#include "base/secure/opening_connections.h"
#include "transport/tcp/address.h"
#include "transport/tcp/credentials.h"
#include "transport/tcp/peer.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace diomp::transport::tcp {

/// Key of a rank's addresses in the launcher's key-value space.
inline constexpr const char *address_key = "tcp";

/// Tries the addresses of a rank in order until one is authenticated. Guarded by its owner's lock.
class connector {
public:
    using attempt_result = secure::opening_connections::attempt_result;

    /// The arguments must outlive this object.
    connector(launch::launcher &launcher, const tuning &how, const credentials &own)
        : launcher_(launcher), tuning_(how), credentials_(own),
          attempts_(static_cast<std::size_t>(launcher.info().size)) {}
    /// `local`: addresses of this host.
    status start(address_blob own, std::vector<in6_addr> local);

    /// Descriptor that is readable when advance() has work.
    [[nodiscard]] int fd() const { return opening_->fd(); }
    /// Attempts that have ended; their tags are ranks.
    [[nodiscard]] std::vector<attempt_result> advance() { return opening_->advance(); }
    /// Connects to the next address; an error, with `previous_error`, if none is left.
    [[nodiscard]] status connect(const peer &target, const std::string &previous_error = {});
    /// Continues after an attempt that has failed; an error if no address is left.
    [[nodiscard]] status retry(const peer &target, const attempt_result &failed);
    void cancel(world_rank target) { opening_->remove(tag_of(target)); }
    /// The rank is connected: a later connect() starts from its first address.
    void note_connected(world_rank target);
    [[nodiscard]] std::size_t num_attempts() const { return opening_->size(); }

private:
    struct attempts {
        std::size_t next_address = 0;
        int num_closed = 0; ///< times that the previous address closed the connection
    };
    static std::uint64_t tag_of(world_rank rank) {
        return static_cast<std::uint32_t>(rank.value());
    }

    /// Adds a reason to those for which the rank was not reached, each once.
    void note_failure(world_rank target, const std::string &why);

    launch::launcher &launcher_;
    const tuning &tuning_;
    const credentials &credentials_;
    address_blob own_address_;
    std::vector<in6_addr> local_addresses_;
    lazy_array<attempts> attempts_; ///< by rank
    std::map<world_rank, std::string> failures_;
    std::optional<secure::opening_connections> opening_;
};

} // namespace diomp::transport::tcp
