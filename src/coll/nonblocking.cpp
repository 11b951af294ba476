// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives that do not block: the group's queue makes the call.
#include "coll/collective.h"
#include "group/group.h"
#include "rma/event.h"

#include <memory>
#include <utility>
#include <vector>

namespace diomp::coll {

using sync::operation;

result<ompx_event *> collectives::start(group::group &members, const request &args) {
    return start(members, args, {{args.dst, args.src, nullptr}});
}

result<ompx_event *> collectives::start(group::group &members, const request &args,
                                        std::vector<endpoint_buffers> own) {
    if (args.what != operation::barrier) {
        DIOMP_TRY(check(members, args, own));
    }
    auto event = std::make_unique<ompx_event>();
    event->operation = sync::name_of(args.what);
    members.calls().submit([this, &members, args, own = std::move(own), event = event.get()] {
        event->complete(run_locked(members, args, own, true));
        members.wake_waiters();
    });
    return event.release();
}

} // namespace diomp::coll
