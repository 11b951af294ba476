// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process that listens: it gives each client that proves that it knows the token a session, a
// process of its own. One thread, which never loads or runs anything of a client.
#pragma once

#include "base/result.h"
#include "base/secure/pending_connections.h"
#include "base/unique_fd.h"
#include "offload/remote/protocol.h"
#include "offload/service/executor.h"
#include "offload/service/image_store.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace diomp::offload::service {

/// A device that a service lends. The processors that its sessions may use, empty: all.
struct lent_device {
    remote::offer description;
    int number = 0; ///< of LLVM's plugin
    std::vector<int> processors;
};

/// What all devices of this host have in common.
[[nodiscard]] remote::offer describe_host();

struct server_options {
    std::vector<lent_device> devices;
    double handshake_timeout_s = 10;
    int most_sessions = 64;         ///< at a time; at least one for each device
    double least_kernel_time_s = 0; ///< kernels that are over earlier sleep for the rest
    std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
    bool once = false;                          ///< ends with the last session
};

class server {
public:
    server(unique_fd listener, secure::secret token, server_options chosen);
    ~server();
    server(const server &) = delete;
    server &operator=(const server &) = delete;

    /// Serves until `stop_fd` becomes readable, or with `once` until the last session has ended.
    status run(int stop_fd);
    /// That have been started.
    [[nodiscard]] std::size_t num_sessions() const { return num_sessions_; }

private:
    struct session_process;
    status listen();
    void serve_proven();
    void serve(remote::control_link client);
    void start_session(remote::control_link client, const lent_device &device);
    [[noreturn]] void be_session(session_process &own, const lent_device &device);
    void reap();
    /// "": none.
    [[nodiscard]] std::string reason_to_refuse(std::uint32_t device) const;
    static void refuse(remote::control_link &client, remote::frame how, const std::string &why);

    unique_fd listener_;                                 ///< until it runs
    std::optional<secure::secret> token_;                ///< not in sessions
    std::optional<secure::pending_connections> pending_; ///< while it runs, not in sessions
    std::deque<secure::pending_connections::proven_connection> proven_; ///< to be served now
    std::unique_ptr<image_store> images_;                               ///< while it runs
    server_options const chosen_;
    std::size_t const most_sessions_;
    std::map<pid_t, std::unique_ptr<session_process>> sessions_;
    std::size_t num_sessions_ = 0; ///< that have been started
};

} // namespace diomp::offload::service
