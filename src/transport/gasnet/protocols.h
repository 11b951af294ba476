// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The protocols that this GASNet-EX conduit supports: active messages, GASNet's own puts and gets,
// and transfers by its memory kinds; the choice among them, and their progress.
#pragma once

#include "transport/gasnet/device_memory.h"
#include "transport/gasnet/iface.h"
#include "transport/gasnet/rdma.h"

namespace diomp::transport::gasnet {

/// Any thread after creation.
class protocols {
public:
    /// Collective. Publishes the memory of this rank that GASNet's puts and gets can access;
    /// transfers must wait until all ranks have done so.
    static result<protocols> create(const launch::gasnet::gasnet_client &job,
                                    launch::launcher &launcher, const arena &arena,
                                    const conduit_options &options, arrivals &arrived);

    [[nodiscard]] iface &messages() const { return *messages_; }
    /// May be called if has_rdma() is true of a peer.
    [[nodiscard]] rdma &native() const { return *native_; }
    /// nullptr: no memory kinds.
    [[nodiscard]] device_memory *devices() const { return devices_.get(); }

    /// Whether GASNet's own puts and gets can access the peer's slot.
    [[nodiscard]] bool has_rdma(const peer &to) const {
        return native_ != nullptr && native_->has_slot() && to.has_segment();
    }
    /// For diomp-info.
    [[nodiscard]] std::string describe(const peer &to) const;

    /// Makes progress. True if there was any.
    bool advance() const {
        auto const current = devices_ != nullptr ? devices_->context().bind_to_thread() : nullptr;
        bool const progressed = messages_->advance();
        return (native_ != nullptr && native_->advance()) || progressed;
    }
    /// Whether operations are outstanding whose completion arrives without a message.
    [[nodiscard]] bool is_quiet() const { return native_ != nullptr && native_->is_quiet(); }

private:
    explicit protocols(std::unique_ptr<iface> messages) : messages_(std::move(messages)) {}
    /// The memory of this rank that GASNet's own puts and gets can access.
    [[nodiscard]] std::vector<bound_range> bound() const;

    std::unique_ptr<iface> messages_;
    std::unique_ptr<rdma> native_;           ///< nullptr: GASNet's conduit has no RDMA endpoints
    std::unique_ptr<device_memory> devices_; ///< nullptr: no memory kinds
};

} // namespace diomp::transport::gasnet
