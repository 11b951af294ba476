// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values of any length: some launchers have values of a few KiB.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <string>
#include <string_view>

namespace diomp::launch {

class launcher;

/// Publishes `text` under `key` in parts. Call before a fence.
status publish_long_value(launcher &launcher, std::string_view key, std::string_view text);
/// What `owner` has published under `key`: one get() per part of 3000 bytes. Call after that fence.
result<std::string> fetch_long_value(launcher &launcher, std::string_view key,
                                     world_rank owner = world_rank(0));

} // namespace diomp::launch
