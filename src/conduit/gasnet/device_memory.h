// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of devices that GASNet-EX's own puts and gets reach (its memory kinds), in builds whose
// GASNet has some. A range of it is bound to an endpoint of its own, and all ranks tell each other
// of their endpoints together: so it has to be there when the network is made, and nothing is
// added later. A transfer goes between two endpoints, which are found by where its ends lie.
#pragma once

#include "conduit/conduit.h"
#include "conduit/device_scopes.h"
#include "conduit/gasnet/peer.h"
#include "launch/gasnet/client.h"

#include <memory>
#include <optional>
#include <vector>

namespace diomp::conduit::gasnet {

/// Any thread, once it is made.
class device_memory {
public:
    /// Collective in builds with kinds; in others nullptr. A range that cannot be bound is left
    /// out, with a warning.
    static result<std::unique_ptr<device_memory>> create(const launch::gasnet::client &job,
                                                         const conduit_options &options);

    /// Of this rank.
    [[nodiscard]] const std::vector<bound_range> &bound() const { return bound_; }
    [[nodiscard]] bool reaches(const memory_range &own) const {
        return find_around(bound_, own) != nullptr;
    }
    /// From the endpoint of the local range to that of the remote one. nullopt: one of them has
    /// none, or such transfers are not wanted here.
    [[nodiscard]] std::optional<gex_TM_t> way(const peer &to, const memory_range &remote,
                                              const memory_range &local) const;
    /// GASNet does not see to the current device itself.
    [[nodiscard]] device_scopes &scopes() { return scopes_; }

private:
    explicit device_memory(const launch::gasnet::client &job) : job_(job) {}
    status bind(const device_range &wanted);

    const launch::gasnet::client &job_;
    bool is_wanted_ = false;
    std::vector<gex_EP_t> endpoints_;
    std::vector<bound_range> bound_; ///< to the same
    device_scopes scopes_;
};

} // namespace diomp::conduit::gasnet
