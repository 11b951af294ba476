// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/job_secret.h"

#include <string>

namespace diomp::transport {

status publish_secret(launch::launcher &launcher, std::string_view key) {
    if (launcher.info().rank != world_rank(0)) {
        return {};
    }
    std::string text = secure::secret::random().encode();
    status published = launcher.put(key, text);
    secure::erase(text);
    return published;
}

result<secure::secret> fetch_secret(launch::launcher &launcher, std::string_view key) {
    auto text = launcher.get(world_rank(0), key);
    DIOMP_TRY(text);
    auto secret = secure::secret::decode(text.value());
    secure::erase(text.value());
    if (!secret) {
        return error(OMPX_ERR_SYSTEM,
                     "the launcher returned a damaged copy of the secret that rank 0 published");
    }
    return secret;
}

} // namespace diomp::transport
