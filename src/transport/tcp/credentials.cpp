// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/credentials.h"

#include "transport/tcp/wire.h"

namespace diomp::transport::tcp {
namespace {

/// Key of rank 0's secret in the launcher's key-value space.
constexpr const char *secret_key = "tcp.secret";

} // namespace

status credentials::share(launch::launcher &launcher) {
    if (own_rank_ == world_rank(0)) {
        std::string text = secret_.encode();
        status published = launcher.put(secret_key, text);
        secure::erase(text);
        DIOMP_TRY(published);
    }
    DIOMP_TRY(launcher.fence());
    auto text = launcher.get(world_rank(0), secret_key);
    DIOMP_TRY(text);
    auto secret = secure::secret::decode(text.value());
    secure::erase(text.value());
    if (!secret) {
        return error(OMPX_ERR_SYSTEM,
                     "the launcher returned a damaged copy of the secret that rank 0 published");
    }
    secret_ = secret.take();
    return {};
}

secure::handshake_options credentials::options() const {
    return {.why = secure::purpose::transfers,
            .self = {secure::role::rank, static_cast<std::uint32_t>(own_rank_.value())},
            .version = protocol_version,
            .wanted = encrypts_ ? secure::protection::sealed : secure::protection::plain};
}

secure::handshake credentials::initiate(world_rank peer) const {
    return secure::handshake::initiate(
        secret_, options(), {secure::role::rank, static_cast<std::uint32_t>(peer.value())});
}

secure::handshake credentials::respond() const {
    return secure::handshake::respond(secret_, options(), {secure::role::rank, 0, num_ranks_});
}

} // namespace diomp::transport::tcp
