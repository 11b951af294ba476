// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank started by diomp-run.
#pragma once

#include "launch/launch.h"

#include <functional>

namespace diomp::launch::local {

/// True if any of diomp-run's variables is set.
bool present(const std::function<const char *(const char *)> &lookup);

/// Joins the job that the environment names. Takes ownership of the socket and sets FD_CLOEXEC.
/// Does not change the environment.
result<std::unique_ptr<launcher>> join(const std::function<const char *(const char *)> &lookup);

/// Removes the launcher's variables, so that children of this rank do not try to join.
void forget_environment();

} // namespace diomp::launch::local
