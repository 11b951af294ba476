// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent_launcher.h"

#include "core/orphans.h"
#include "core/pipe.h"
#include "core/rank_terminator.h"
#include "listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

namespace diomp::run {

agent_launcher::agent_launcher(event_loop &loop, host_table &hosts, output_hub &output,
                               const host_options &options, guard guard_process,
                               spawn_request common,
                               std::function<void(host &, const error &)> on_failure)
    : loop_(loop), hosts_(hosts), output_(output), options_(options),
      guard_(std::move(guard_process)), common_(std::move(common)),
      on_failure_(std::move(on_failure)) {
    for (char **each = environ; *each != nullptr; ++each) {
        common_.environment.emplace_back(*each);
    }
}

result<std::unique_ptr<agent_launcher>>
agent_launcher::create(event_loop &loop, host_table &hosts, output_hub &output,
                       const host_options &options, const std::string &mark, spawn_request common,
                       std::function<void(host &, const error &)> on_failure) {
    // Orphans of remote shells become children of this process, not of init.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto guard_process = guard::start(mark);
    DIOMP_TRY(guard_process);
    return std::unique_ptr<agent_launcher>(
        new agent_launcher(loop, hosts, output, options, guard_process.take(), std::move(common),
                           std::move(on_failure)));
}

/// This machine needs no shell, unless the user has named one, which is used for all hosts: it may
/// do more than log in.
status agent_launcher::find_shell(int &exit_status) {
    bool const named = options_.remote_shell != default_remote_shell;
    for (host &each : hosts_) {
        each.is_local = !named && is_local_name(each.block.name);
    }
    if (std::ranges::all_of(hosts_, &host::is_local)) {
        return {};
    }
    auto found = find_remote_shell(options_.remote_shell, exit_status);
    DIOMP_TRY(found);
    shell_ = found.take();
    return {};
}

result<std::string> agent_launcher::start(host &which, agent_bootstrap bootstrap) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends const ends = opened.take();
    std::string text = encode_bootstrap(bootstrap);
    // The data fits: a pipe holds 64 KiB, and the agent refuses more.
    bool const is_written =
        write(ends.writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    secure::erase(text);
    secure::erase(bootstrap.secret);
    if (!is_written) {
        return system_error("write", errno);
    }
    unique_fd errors;
    auto number = output_.open_error_pipe(errors);
    DIOMP_TRY(number);
    which.shell_output = number.value();
    spawn_request request = common_;
    if (which.is_local) {
        request.path = "/bin/sh";
        request.arguments = {"sh", "-c"};
    } else {
        request.path = shell_.path;
        request.arguments = shell_.words;
        request.arguments.push_back(which.block.name);
    }
    request.arguments.push_back(
        remote_command(options_.program(), {"--agent"}, std::getenv("LD_LIBRARY_PATH")));
    request.standard_input = ends.reading.get();
    request.standard_output = errors.get(); // does not carry the ranks' output
    request.standard_error = errors.get();
    DIOMP_TRY(which.shell.start(request));
    guard_.monitor(which.shell.pid());
    ++running_;
    hosts_.enter(which, host_stage::starting);
    which.last_received = std::chrono::steady_clock::now();
    DIOMP_TRY(which.shell.watch(loop_, [this, &which] { on_shell_exit(which); }));
    return fmt::format("{} (pid {})", request.arguments.front(), which.shell.pid());
}

void agent_launcher::on_shell_exit(host &which) {
    auto const how = which.shell.exit();
    if (!how || !which.shell.is_watched()) {
        return;
    }
    which.shell.unwatch();
    --running_;
    output_.collect_pipe(which.shell_output);
    // A shell that exits with status 0 may run in the background: the agent may still connect.
    if (which.stage == host_stage::starting && !how->success()) {
        on_failure_(which, error(OMPX_ERR_SYSTEM, explain_exit(which, *how)));
    }
}

std::string agent_launcher::explain_exit(const host &which, const exit_info &how) const {
    const std::string &name = which.block.name;
    if (auto const why = which.shell.start_failure()) {
        return fmt::format("host {}: {}", name, why->message());
    }
    std::string const shell = which.is_local ? "sh" : shell_.words.front();
    if (how.signal == 0 && how.code == 255) {
        return fmt::format("cannot reach host {}: {} exited with status 255; check that `{} {} "
                           "true` works without a password",
                           name, shell, options_.remote_shell, name);
    }
    if (how.signal == 0 && (how.code == 126 || how.code == 127)) {
        return fmt::format(
            "host {} cannot execute {} ({} exited with status {}); install diomp-run "
            "there, or name it with --agent-program",
            name, options_.program(), shell, how.code);
    }
    return fmt::format("host {}: {} {} before diomp-run there had connected", name, shell,
                       describe(how));
}

bool agent_launcher::owns(pid_t pid) const {
    return pid == guard_.pid() ||
           std::ranges::any_of(hosts_, [pid](const host &each) { return each.shell.pid() == pid; });
}

void agent_launcher::clean_up() {
    for (const host &each : hosts_) {
        each.shell.signal_group(SIGKILL);
    }
    if (!kill_and_reap_children(guard_.pid(), kill_limit_s)) {
        output_.message("some remote shells do not end, not even by SIGKILL");
    }
    guard_.dismiss();
    for (const host &each : hosts_) {
        if (each.shell.pid() > 0) {
            output_.collect_pipe(each.shell_output);
        }
    }
}

} // namespace diomp::run
