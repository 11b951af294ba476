// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/protocols.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::transport::gasnet {

result<protocols> protocols::create(const launch::gasnet::gasnet_client &job,
                                    launch::launcher &launcher, const arena &arena,
                                    const conduit_options &options, arrivals &arrived) {
    protocols made(std::make_unique<iface>(job, launcher, arrived));
    auto native = rdma::create(job, launcher.info(), arena, options.network_rma, *made.messages_);
    DIOMP_TRY(native);
    made.native_ = native.take();
    DIOMP_TRY(launcher.put(host_key, launcher.info().host));
    auto devices = device_memory::create(job, options);
    DIOMP_TRY(devices);
    made.devices_ = devices.take();
    DIOMP_TRY(launcher.put(bound_key, to_text(made.bound())));
    return made;
}

std::vector<bound_range> protocols::bound() const {
    std::vector<bound_range> all;
    if (devices_ != nullptr) {
        all = devices_->bound();
    }
    if (native_ != nullptr && native_->has_slot()) {
        all.push_back(native_->slot());
    }
    return all;
}

std::string protocols::describe(const peer &to) const {
    bool const knows_devices = std::ranges::any_of(
        to.bound(), [](const bound_range &each) { return each.range.kind != memory_kind::host; });
    return fmt::format("gasnet ({}, {}{})", launch::gasnet::conduit_name(),
                       has_rdma(to) ? native_->description() : "active messages",
                       knows_devices ? ", device memory" : "");
}

} // namespace diomp::transport::gasnet
