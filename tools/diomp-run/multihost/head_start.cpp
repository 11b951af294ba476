// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start-up of a job on several hosts, until its ranks run.
#include "core/pipe.h"
#include "head.h"
#include "head_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace diomp::run {
namespace {

/// Limit of concurrent remote shells: each costs this host a process and a key exchange.
constexpr std::size_t max_starting = 64;
/// Limit of unauthenticated connections per address: an agent connects to all addresses at once.
constexpr std::size_t max_pending_per_address = max_starting + 64;

} // namespace

head::head(run_options options, std::vector<rank_block> blocks)
    : supervisor(std::move(options)), settings_(forwarded_settings(environ, options_.environment)),
      peer_timeout_s_(peer_timeout(settings_)), hosts_(blocks.size()),
      pids_(static_cast<std::size_t>(options_.ranks), -1), remaining_(blocks.size()) {
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        hosts_[index].block = std::move(blocks[index]);
    }
}

head::~head() = default;

status head::set_up() {
    // Orphans of remote shells become children of this process, not of init.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto guard_process = guard::start(fmt::format("{}={}", launch::local::job_variable, job_id_));
    DIOMP_TRY(guard_process);
    guard_ = std::make_unique<guard>(guard_process.take());
    for (auto [which, on_expiry] :
         {std::pair(&tick_, &head::on_tick), std::pair(&deadline_, &head::on_deadline)}) {
        auto made = add_timer(*loop_, [this, on_expiry] { (this->*on_expiry)(); });
        DIOMP_TRY(made);
        *which = made.take();
    }
    output_->add_remote_ranks(options_.output_dir.empty() ? options_.ranks : 0);
    output_->on_flow_change = [this] { on_flow_change(); };
    input_ = std::make_unique<input_reader>(*loop_, [this](std::string_view text) {
        frame_writer frame(frame_type::input);
        frame.bytes(text);
        hosts_.front().link->send(frame.take());
    });
    return {};
}

status head::start() {
    exit_status_ = status_usage; // until the command line is known to be correct
    int exit_status = status_usage;
    if (auto found = find_shell(exit_status); !found) {
        exit_status_ = exit_status;
        return found;
    }
    program_ = options_.hosts.program();
    DIOMP_TRY(listen());
    last_tick_ = clock::now();
    tick_->arm(heartbeat_interval(peer_timeout_s_));
    start_more();
    return {};
}

status head::listen() {
    bool const is_all_local = std::ranges::all_of(hosts_, &host::is_local);
    auto opened = open_listener(options_.hosts.head_address.empty() && is_all_local
                                    ? "127.0.0.1"
                                    : options_.hosts.head_address);
    DIOMP_TRY(opened);
    addresses_ = std::move(opened.value().addresses);
    std::size_t const max_pending = max_pending_per_address * addresses_.size();
    raise_open_files(hosts_.size() * 4 + 2 * max_pending + 64);
    exit_status_.reset();
    auto pending = secure::pending_connections::create(
        std::move(opened.value().socket),
        [this] {
            return secure::handshake::respond(
                secret_, launch_handshake({secure::role::head, 0}),
                {secure::role::agent, 0, static_cast<std::uint32_t>(hosts_.size())});
        },
        [this](const std::string &text) { output_->message(text); },
        {.max_silent = max_pending, .max_plausible = max_pending});
    DIOMP_TRY(pending);
    pending_.emplace(pending.take());
    auto token = loop_->add(pending_->fd(), EPOLLIN, [this](std::uint32_t) { on_pending(); });
    DIOMP_TRY(token);
    pending_token_ = token.value();
    return {};
}

/// Finds the remote shell. This machine needs none, unless the user has named one, which is used
/// for all hosts: it may do more than log in.
status head::find_shell(int &exit_status) {
    bool const named = options_.hosts.remote_shell != default_remote_shell;
    for (host &each : hosts_) {
        each.is_local = !named && is_local_name(each.block.name);
    }
    if (std::ranges::all_of(hosts_, &host::is_local)) {
        return {};
    }
    auto found = find_remote_shell(options_.hosts.remote_shell, exit_status);
    DIOMP_TRY(found);
    shell_ = found.take();
    return {};
}

void head::start_more() {
    while (end_->is_running() && next_to_start_ < hosts_.size() && starting_ < max_starting) {
        std::size_t const index = next_to_start_++;
        if (auto started = start_agent(index); !started) {
            fail_start(1,
                       error(OMPX_ERR_SYSTEM, fmt::format("host {}: {}", hosts_[index].block.name,
                                                          started.failure().message())));
        }
    }
}

status head::start_agent(std::size_t index) {
    host &which = hosts_[index];
    agent_bootstrap bootstrap{static_cast<int>(index), secret_.encode(), peer_timeout_s_,
                              signals_->original().ignored_list(), addresses_};
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
    auto number = output_->open_error_pipe(errors);
    DIOMP_TRY(number);
    which.shell_output = number.value();
    spawn_request request;
    if (which.is_local) {
        request.path = "/bin/sh";
        request.arguments = {"sh", "-c"};
    } else {
        request.path = shell_.path;
        request.arguments = shell_.words;
        request.arguments.push_back(which.block.name);
    }
    request.arguments.push_back(
        remote_command(program_, {"--agent"}, std::getenv("LD_LIBRARY_PATH")));
    for (char **each = environ; *each != nullptr; ++each) {
        request.environment.emplace_back(*each);
    }
    request.standard_input = ends.reading.get();
    request.standard_output = errors.get(); // does not carry the ranks' output
    request.standard_error = errors.get();
    request.signals = signals_->original();
    request.open_files = original_open_files_;
    auto spawned = spawn(request);
    DIOMP_TRY(spawned);
    which.shell = spawned.take();
    guard_->monitor(which.shell.pid());
    ++shells_;
    ++starting_;
    which.state = stage::starting;
    which.last_received = clock::now();
    which.shell_fd = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, which.shell.pid(), 0)));
    auto token = loop_->add(which.shell_fd.get(), EPOLLIN,
                            [this, index](std::uint32_t) { on_shell_exit(index); });
    DIOMP_TRY(token);
    which.shell_token = token.value();
    if (options_.verbose) {
        output_->message(fmt::format("host {}: ranks {} to {}, started by {} (pid {})",
                                     which.block.name, which.block.first_rank,
                                     which.block.first_rank + which.block.ranks - 1,
                                     request.arguments.front(), which.shell.pid()));
    }
    return {};
}

void head::on_pending() {
    for (auto &each : pending_->advance()) {
        accept_agent(std::move(each));
    }
}

/// Accepts the authenticated connection of an agent. A second connection of a host, or one that is
/// too late, is closed.
void head::accept_agent(secure::pending_connections::proven_connection from) {
    std::size_t const index = from.proven.peer.number;
    host &which = hosts_[index];
    if (which.state != stage::starting) {
        return;
    }
    auto link = frame_link::create(*loop_, *this, std::move(from.socket), std::move(from.proven),
                                   peer_timeout_s_);
    if (!link) {
        return; // the agent reports the closed connection
    }
    which.link = link.take();
    which.link->tag = static_cast<int>(index);
    which.last_received = clock::now();
    which.state = stage::connected;
    --starting_;
    send_setup(which);
    start_more();
}

void head::send_setup(host &which) {
    if (!end_->is_running()) {
        which.link->send(small_frame(frame_type::kill)); // the job is ending already
        return;
    }
    agent_setup setup;
    setup.world_size = static_cast<std::uint32_t>(options_.ranks);
    setup.block = which.block;
    setup.bind = options_.bind;
    setup.verbose = options_.verbose;
    setup.job_id = job_id_;
    std::error_code failure;
    setup.directory = std::filesystem::current_path(failure).string();
    const char *const path = std::getenv("PATH");
    setup.search_path = path != nullptr ? path : "";
    setup.output_dir = options_.output_dir;
    setup.command = options_.command;
    setup.environment = settings_;
    if (!remote_devices_.empty()) {
        auto const first = remote_devices_.begin() + which.block.first_rank;
        setup.remote_devices.assign(first, first + which.block.ranks);
    }
    which.link->send(encode_setup(setup));
}

void head::on_ready(host &which) {
    if (which.state != stage::connected) {
        return;
    }
    which.state = stage::ready;
    if (++ready_ < hosts_.size()) {
        return;
    }
    loop_->remove(pending_token_); // all agents have connected: closes the port
    pending_.reset();
    for (host &each : hosts_) {
        each.state = stage::running;
        each.link->send(small_frame(frame_type::go));
    }
    input_->resume();
}

void head::on_shell_exit(std::size_t index) {
    host &which = hosts_[index];
    auto const how = peek_exit(which.shell.pid());
    if (!how || which.shell_token == event_loop::token::none) {
        return;
    }
    loop_->remove(which.shell_token);
    which.shell_fd.reset();
    --shells_;
    output_->collect_pipe(which.shell_output);
    // A shell that exits with status 0 may run in the background: the agent may still connect.
    if (which.state == stage::starting && !how->success()) {
        fail_start(1, error(OMPX_ERR_SYSTEM, explain_shell_exit(which, *how)));
        mark_gone(which);
    }
}

std::string head::explain_shell_exit(const host &which, const exit_info &how) const {
    const std::string &name = which.block.name;
    if (auto const why = which.shell.start_failure()) {
        return fmt::format("host {}: {}", name, why->message());
    }
    std::string const shell = which.is_local ? "sh" : shell_.words.front();
    if (how.signal == 0 && how.code == 255) {
        return fmt::format("cannot reach host {}: {} exited with status 255; check that `{} {} "
                           "true` works without a password",
                           name, shell, options_.hosts.remote_shell, name);
    }
    if (how.signal == 0 && (how.code == 126 || how.code == 127)) {
        return fmt::format(
            "host {} cannot execute {} ({} exited with status {}); install diomp-run "
            "there, or name it with --agent-program",
            name, program_, shell, how.code);
    }
    return fmt::format("host {}: {} {} before diomp-run there had connected", name, shell,
                       describe(how));
}

} // namespace diomp::run
