// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When cached translations of device memory are no longer valid.
#pragma once

#include <atomic>
#include <cstdint>

namespace diomp::api {

/// Incremented before device memory of this rank is freed and when the runtime starts or ends.
/// Translations of an earlier epoch are invalid.
extern std::atomic<std::uint64_t> g_epoch;

} // namespace diomp::api
