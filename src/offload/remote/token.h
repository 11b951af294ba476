// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The token shared by a service and its clients, and the sources it is read from.
#pragma once

#include "base/secure/secret.h"

#include <cstddef>

namespace diomp::offload::remote {

inline constexpr std::size_t max_token_bytes = 256;
/// Name of the token's file in systemd's credentials directory.
inline constexpr const char *credential_name = "diomp-token";

/// The first source that is neither null nor empty is used.
struct token_sources {
    const char *text = nullptr;        ///< DIOMP_TOKEN
    const char *file = nullptr;        ///< DIOMP_TOKEN_FILE: must not be readable by other users
    const char *credentials = nullptr; ///< CREDENTIALS_DIRECTORY of systemd
};

/// Reads the token and derives the secret from it; erases the copies of the text that it made.
/// OMPX_ERR_ARG: no token, its file is readable by other users, or it is empty or too long.
result<secure::secret> read_token(const token_sources &from);

} // namespace diomp::offload::remote
