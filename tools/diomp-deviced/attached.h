// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A service that diomp-run has started, here or by a remote shell: it lives as long as its standard
// input.
#pragma once

#include "base/result.h"
#include "base/secure/secret.h"
#include "base/unique_fd.h"

#include <string>

namespace diomp::deviced {

struct handed_over {
    unique_fd input;   ///< what is left of standard input: its end is diomp-run's
    std::string token; ///< DIOMP_TOKEN; the caller erases it
};
/// Takes settings from standard input into the environment: NAME=VALUE, each ended by a zero, and
/// one zero more. The token is among them, which must not be seen on a command line; it does not
/// get into the environment either, whose old values stay in memory.
result<handed_over> take_settings();

/// The address of this host at which ssh's client has come; "" if ssh does not say.
std::string address_of_ssh();

/// Readable when one of them is, or has ended; -1: none.
result<unique_fd> either(int one, int other);

} // namespace diomp::deviced
