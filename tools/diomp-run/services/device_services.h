// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The services of --remote-devices: diomp-run starts a diomp-deviced on each host and ends it with
// the job. On this machine the service is a child process, on other hosts a command of the remote
// shell. A service reads its settings and the token from standard input, prints where it listens,
// and ends at the end of its input, which comes however diomp-run ends.
#pragma once

#include "core/event_loop.h"
#include "core/pipe.h"
#include "core/watched_process.h"
#include "multihost/remote_shell.h"
#include "remote_devices.h"

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

namespace diomp::run {

struct services_plan {
    std::vector<device_host> hosts;
    bool ranks_are_local = true; ///< all ranks run here, so local services listen at loopback
    std::string remote_shell;    ///< command
    std::string program;         ///< diomp-run on other hosts; diomp-deviced is in its directory
    std::string settings;        ///< NAME=VALUE, each ended by '\0', including the token
    original_signals signals;
    rlimit open_files{};
    double start_limit_s = 0;
};

class device_services {
public:
    struct handlers {
        /// A service cannot be started or has ended, so the job must end. Called once.
        std::function<void(const error &)> failed;
        /// A line of output for the user.
        std::function<void(const std::string &)> on_text;
    };
    static result<std::unique_ptr<device_services>> create(event_loop &loop, services_plan plan,
                                                           handlers on);
    ~device_services();
    device_services(const device_services &) = delete;
    device_services &operator=(const device_services &) = delete;

    /// Starts all services without waiting for them. On failure some may run, and `exit_status` is
    /// set where diomp-run's exit status is not 1.
    status start(int &exit_status);
    /// Returns whether all services listen.
    [[nodiscard]] bool ready() const { return listening_ == services_.size(); }
    [[nodiscard]] std::vector<device_service> listening() const;
    /// Returns whether the child process is a service, which only this class may reap.
    [[nodiscard]] bool owns(pid_t pid) const;
    /// Handles services that have ended, without waiting for the event loop.
    void poll();
    /// Asks the services to end and returns; finished() is true when they have. After a time limit
    /// they are killed.
    void stop();
    [[nodiscard]] bool finished() const { return running_ == 0 || phase_ == phase::gave_up; }
    /// Returns, after finished(), whether every service has reported that no client connected.
    [[nodiscard]] bool unused() const;

private:
    struct service {
        device_host host;
        bool is_local = false;
        std::string address; ///< to listen at; empty: the one that the remote shell connected to
        int port = 0;        ///< 0: not listening yet
        watched_process process; ///< the service or its remote shell; leads a process group
        unique_fd input;
        unique_fd output; ///< output of the service and of its remote shell
        event_loop::token output_token = event_loop::token::none;
        std::string unfinished; ///< an incomplete line
        long sessions = -1;     ///< reported number of clients; -1: not reported yet
    };

    enum class phase {
        serving,
        failed,   ///< `handlers::failed` was called
        stopping, ///< the services have been asked to end
        killed,
        gave_up, ///< a process is left even after SIGKILL
    };

    device_services(event_loop &loop, services_plan plan, handlers on)
        : loop_(loop), plan_(std::move(plan)), on_(std::move(on)) {}
    status resolve_service(service &which) const;
    status start_one(service &which);
    status send_settings(service &which, const pipe_ends &input) const;
    [[nodiscard]] spawn_request request_for(const service &which, int input, int output) const;
    [[nodiscard]] std::vector<std::string> service_arguments(const service &which) const;
    void on_output(service &which);
    void on_line(service &which, std::string line);
    void on_exit(service &which);
    void on_limit();
    void fail(error why);
    [[nodiscard]] std::string explain(const service &which, const exit_info &how) const;

    event_loop &loop_;
    services_plan plan_;
    handlers on_;
    shell_command shell_;
    std::unique_ptr<timer> limit_;
    std::vector<std::unique_ptr<service>> services_;
    std::size_t listening_ = 0;
    std::size_t running_ = 0;
    phase phase_ = phase::serving;
};

} // namespace diomp::run
