// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The token that a service and its clients have in common, and where they find it.
#pragma once

#include "base/secure/secret.h"

#include <cstddef>

namespace diomp::offload::remote {

inline constexpr std::size_t max_token_bytes = 256;
/// Of the token's file in a folder of systemd's credentials.
inline constexpr const char *credential_name = "diomp-token";

/// The first one that is neither null nor empty counts.
struct token_sources {
    const char *text = nullptr;        ///< DIOMP_TOKEN
    const char *file = nullptr;        ///< DIOMP_TOKEN_FILE: no other user may be able to read it
    const char *credentials = nullptr; ///< CREDENTIALS_DIRECTORY of systemd
};

/// The secret that a token makes; copies of its text that are made here are erased.
/// OMPX_ERR_ARG: there is none, others can read it, or it is empty or too long.
result<secure::secret> read_token(const token_sources &from);

} // namespace diomp::offload::remote
