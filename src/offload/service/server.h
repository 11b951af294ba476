// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process that listens: it starts a session, a separate process, for each client that
// authenticates with the token. One thread, which never loads or runs code of a client.
#pragma once

#include "base/result.h"
#include "base/secure/pending_connections.h"
#include "base/unique_fd.h"
#include "offload/remote/protocol.h"
#include "offload/service/activity_table.h"
#include "offload/service/confinement.h"
#include "offload/service/image_store.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace diomp::offload::service {

/// A device that a service lends. `processors`: those that its sessions may use; empty: all.
struct lent_device {
    remote::device_description description;
    int number = 0; ///< of LLVM's plugin
    std::vector<int> processors;
};

/// The part of a description that is the same for all devices of this host.
[[nodiscard]] remote::device_description describe_host();
/// Largest memory of a device: it has the addresses of a client's segments.
std::uint64_t max_memory_bytes();

struct server_options {
    std::vector<lent_device> devices;
    double handshake_timeout_s = 10;
    int max_sessions = 64;                      ///< concurrent; at least one per device
    double min_kernel_time_s = 0;               ///< shorter kernels sleep for the rest
    std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
    bool once = false;                          ///< end with the last session
    confinement rights = confinement::off;      ///< of sessions
};

class server {
public:
    server(unique_fd listener, secure::secret token, server_options chosen);
    ~server();
    server(const server &) = delete;
    server &operator=(const server &) = delete;

    /// Serves until `stop_fd` becomes readable, or with `once` until the last session has ended.
    status run(int stop_fd);
    /// Number of sessions started so far.
    [[nodiscard]] std::size_t num_sessions() const { return num_sessions_; }

private:
    struct session_process;
    status listen();
    status wait_for_events(std::vector<pollfd> &entries);
    void serve_proven();
    void serve(remote::control_connection client);
    void start_session(remote::control_connection client, const lent_device &device);
    status confine(const session_process &own, const lent_device &device);
    [[noreturn]] void run_session_process(session_process &own, const lent_device &device);
    void reap();
    /// Reason to refuse a client of this device; "": none.
    [[nodiscard]] std::string reason_to_refuse(std::uint32_t device) const;
    static void refuse(remote::control_connection &client, remote::frame how,
                       const std::string &why);

    unique_fd listener_;                                 ///< moved from by run()
    std::optional<secure::secret> token_;                ///< not in sessions
    std::optional<secure::pending_connections> pending_; ///< during run(), not in sessions
    std::deque<secure::pending_connections::proven_connection> proven_; ///< not served yet
    std::unique_ptr<image_store> images_;                               ///< during run()
    server_options const chosen_;
    std::size_t const max_sessions_;
    std::map<pid_t, std::unique_ptr<session_process>> sessions_;
    std::size_t num_sessions_ = 0; ///< started so far
};

} // namespace diomp::offload::service
