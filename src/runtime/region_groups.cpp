// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/region_groups.h"

#include "group/group.h"
#include "group/registry.h"
#include "offload/group_members.h"

namespace diomp::runtime {
namespace {

offload::group_members members_of(const group::group &of) {
    offload::group_members made{of.id(), of.members(), of.self().index(), {}, false};
    group::endpoint_list const &all = of.endpoints();
    made.has_several_of_a_rank = !all.empty() && !all.one_each();
    for (std::size_t member = 0; all.size() == of.size() && member < of.size(); ++member) {
        made.devices.push_back(all[all.of(member)[0]].device);
    }
    return made;
}

} // namespace

std::function<result<offload::group_members>(ompx_group_t)>
region_groups(group::group_registry &all) {
    return [&all](ompx_group_t handle) -> result<offload::group_members> {
        auto found = all.find(handle);
        DIOMP_TRY(found);
        return members_of(*found.value());
    };
}

} // namespace diomp::runtime
