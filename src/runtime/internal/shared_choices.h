// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rank 0 chooses for all ranks: the tuning file of collectives, since all members of a group
// have to choose alike, and whether the job has remote devices. And settings that all ranks must
// have alike.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

namespace diomp::coll {
class algorithm_source;
}

namespace diomp::launch {
class launcher;
}

namespace diomp::runtime {

/// The settings of a rank; those of rank 0 apply.
struct own_choices {
    std::string tuning_file; ///< empty: no rules
    bool has_remote_devices = false;
    struct setting {
        std::string name; ///< "DIOMP_CONDUIT"
        std::string value;
    };
    std::vector<setting> equal_settings; ///< in the same order on all ranks
};
struct shared_choices {
    std::shared_ptr<const coll::algorithm_source> algorithms; ///< null: no rules
    bool have_remote_devices = false;
};

/// Rank 0 reads the tuning file and publishes its choices, or why it cannot. Call before a fence.
status publish_choices(launch::launcher &launcher, const own_choices &own);
/// The choices of rank 0, or its error, which is the same on all ranks. Call after that fence.
/// OMPX_ERR_ARG: a setting of this rank is not that of rank 0.
result<shared_choices> fetch_choices(launch::launcher &launcher, const own_choices &own);

} // namespace diomp::runtime
