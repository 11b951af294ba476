// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The secret of a job, by which a network's connections are authenticated.
#pragma once

#include "base/secure/secret.h"
#include "launch/launch.h"

#include <string_view>

namespace diomp::transport {

/// Publishes a random secret under `key`, on rank 0. A fence must follow. Collective.
status publish_secret(launch::launcher &launcher, std::string_view key);
/// The secret of rank 0. After that fence.
result<secure::secret> fetch_secret(launch::launcher &launcher, std::string_view key);

} // namespace diomp::transport
