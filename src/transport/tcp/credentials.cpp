// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/credentials.h"

#include "transport/common/job_secret.h"
#include "transport/tcp/wire.h"

namespace diomp::transport::tcp {
namespace {

/// Key of rank 0's secret in the launcher's key-value space.
constexpr const char *secret_key = "tcp.secret";

} // namespace

status credentials::share(launch::launcher &launcher) {
    DIOMP_TRY(publish_secret(launcher, secret_key));
    DIOMP_TRY(launcher.fence());
    auto secret = fetch_secret(launcher, secret_key);
    DIOMP_TRY(secret);
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
