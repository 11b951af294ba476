// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The services of --remote-devices: a diomp-deviced on each host, started by diomp-run and gone
// with the job. On this machine it is a child, elsewhere a remote shell's command. Each gets its
// settings and the token by its standard input, says where it listens, and ends when that input
// does: so it learns of diomp-run's end, however that comes.
#pragma once

#include "event_loop.h"
#include "pipe.h"
#include "remote_devices.h"
#include "remote_shell.h"
#include "report.h"
#include "spawn.h"

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
    bool ranks_are_here = true; ///< all of them: services of this machine listen at loopback
    std::string remote_shell;   ///< command
    std::string program;        ///< diomp-run, beside which diomp-deviced lies, on other hosts
    std::string settings;       ///< NAME=VALUE, each ended by a zero, the token among them
    original_signals signals;
    rlimit open_files{};
    double start_limit_s = 0;
};

class device_services {
public:
    struct handlers {
        /// A service does not start, or is gone: the job is lost. Called once.
        std::function<void(const error &)> failed;
        /// A line for the user.
        std::function<void(const std::string &)> said;
    };
    static result<std::unique_ptr<device_services>> create(event_loop &loop, services_plan plan,
                                                           handlers on);
    ~device_services();
    device_services(const device_services &) = delete;
    device_services &operator=(const device_services &) = delete;

    /// After a failure some may run; `exit_status` is diomp-run's if it is not 1.
    status start(int &exit_status);
    /// All listen.
    [[nodiscard]] bool ready() const { return listening_ == services_.size(); }
    [[nodiscard]] std::vector<device_service> listening() const;
    /// Whether the child is one of theirs, which nobody else may reap.
    [[nodiscard]] bool owns(pid_t pid) const;
    /// Notices services that have ended, before the loop does.
    void look();
    /// Lets them end; over() tells when they have. Those that do not within a limit are killed.
    void stop();
    [[nodiscard]] bool over() const { return running_ == 0 || gave_up_; }
    /// After that: whether all have reported that no client has connected.
    [[nodiscard]] bool unused() const;

private:
    struct service {
        device_host host;
        bool here = false;
        std::string address;     ///< to listen at; empty: as the remote shell has reached it
        int port = 0;            ///< 0: does not listen yet
        spawned_process process; ///< it or its remote shell; leads a group
        unique_fd pidfd;
        event_loop::token exit_token = event_loop::token::none;
        unique_fd input;
        unique_fd output; ///< what it and its remote shell say
        event_loop::token output_token = event_loop::token::none;
        std::string unfinished; ///< line
        long sessions = -1;     ///< that it has had; -1: it has not said so
    };

    device_services(event_loop &loop, services_plan plan, handlers on)
        : loop_(loop), plan_(std::move(plan)), on_(std::move(on)) {}
    status find_place(service &which) const;
    status start_one(service &which);
    status hand_over_settings(service &which, const pipe_ends &input) const;
    result<spawned_process> spawn_one(const service &which, int input, int output);
    [[nodiscard]] std::vector<std::string> own_arguments(const service &which) const;
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
    bool stopping_ = false;
    bool killed_ = false;
    bool failed_ = false;
    bool gave_up_ = false; ///< a process does not go away even after SIGKILL
};

} // namespace diomp::run
