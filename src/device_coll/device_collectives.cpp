// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/device_collectives.h"

#include "device_coll/internal/device_calls.h"

namespace diomp::device_coll {

device_collectives::device_collectives(coll::collectives &collectives, offload::devices &devices,
                                       messaging::engine &engine, group::group_registry &groups,
                                       options chosen)
    : calls_(std::make_unique<device_calls>(collectives, devices, engine, groups,
                                            std::move(chosen))) {}

device_collectives::~device_collectives() = default;

status device_collectives::run(group::group &members, const coll::request &args, int device) {
    return calls_->run(members, args, device);
}

result<ompx_event *> device_collectives::start(group::group &members, const coll::request &args,
                                               int device) {
    return calls_->start(members, args, device);
}

void device_collectives::describe(group::group &members, ompx_group_t handle) {
    calls_->describe(members, handle);
}

void device_collectives::forget(group::group &members, ompx_group_t handle) {
    calls_->forget(members, handle);
}

void device_collectives::finish() { calls_->finish(); }

} // namespace diomp::device_coll
