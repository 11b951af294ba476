// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory that GASNet-EX's own puts and gets can access (its memory kinds), in builds whose
// GASNet has any. Each range is bound to an endpoint of its own. Ranks publish their endpoints
// collectively, so the ranges must exist when the network is created, and none is added later. A
// transfer uses a pair of endpoints, which follow from its local and its remote address.
#pragma once

#include "launch/gasnet/client.h"
#include "transport/common/device_context.h"
#include "transport/gasnet/peer.h"
#include "transport/options.h"

#include <memory>
#include <optional>
#include <vector>

namespace diomp::transport::gasnet {

/// Any thread after creation.
class device_memory {
public:
    /// Collective in builds with memory kinds; nullptr in others. A range that cannot be bound is
    /// left out with a warning.
    static result<std::unique_ptr<device_memory>> create(const launch::gasnet::gasnet_client &job,
                                                         const conduit_options &options);

    /// The bound ranges of this rank.
    [[nodiscard]] const std::vector<bound_range> &bound() const { return bound_; }
    [[nodiscard]] bool supports_range(const memory_range &own) const {
        return find_enclosing(bound_, own) != nullptr;
    }
    /// The endpoints of the local and the remote range. nullopt: one of them has none, or the
    /// setting excludes such transfers.
    [[nodiscard]] std::optional<gex_TM_t> endpoint_pair(const peer &to, const memory_range &remote,
                                                        const memory_range &local) const;
    /// To be entered before calls of GASNet, which does not make a device current itself.
    [[nodiscard]] device_context &context() { return context_; }

private:
    explicit device_memory(const launch::gasnet::gasnet_client &job) : job_(job) {}
    status bind(const device_range &wanted);

    const launch::gasnet::gasnet_client &job_;
    bool is_wanted_ = false;
    std::vector<gex_EP_t> endpoints_;
    std::vector<bound_range> bound_; ///< [index of endpoints_]
    device_context context_;
};

} // namespace diomp::transport::gasnet
