// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a job on several hosts before its ranks run.
#include "head.h"
#include "head_connection.h"
#include "pipe.h"

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

/// Remote shells at work at the same time: each costs this host a process and a key exchange.
constexpr std::size_t max_starting = 64;
/// Unauthenticated connections of agents, for each address: an agent tries all at once.
constexpr std::size_t most_pending_per_address = max_starting + 64;

} // namespace

head::head(run_options options, std::vector<host_share> shares)
    : supervisor(std::move(options)), settings_(forwarded_settings(environ, options_.environment)),
      lost_after_s_(lost_after(settings_)), hosts_(shares.size()),
      pids_(static_cast<std::size_t>(options_.ranks), -1), remaining_(shares.size()) {
    for (std::size_t index = 0; index < shares.size(); ++index) {
        hosts_[index].share = std::move(shares[index]);
    }
}

head::~head() = default;

status head::set_up() {
    // What a remote shell leaves behind becomes ours and not init's.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto keeper = guard::start(fmt::format("{}={}", launch::local::job_variable, job_id_));
    if (!keeper) {
        return keeper.take_failure();
    }
    guard_ = std::make_unique<guard>(keeper.take());
    for (auto [which, on_expiry] :
         {std::pair(&tick_, &head::on_tick), std::pair(&deadline_, &head::on_deadline)}) {
        auto made = add_timer(*loop_, [this, on_expiry] { (this->*on_expiry)(); });
        if (!made) {
            return made.take_failure();
        }
        *which = made.take();
    }
    output_->add_remote_ranks(options_.output_dir.empty() ? options_.ranks : 0);
    output_->on_flow = [this] { on_flow(); };
    input_ = std::make_unique<input_reader>(*loop_, [this](std::string_view text) {
        frame_writer frame(frame_type::input);
        frame.bytes(text);
        hosts_.front().link->send(frame.take());
    });
    return {};
}

status head::start() {
    exit_status_ = status_usage; // until the command line has proved right
    int exit_status = status_usage;
    if (auto found = find_shell(exit_status); !found) {
        exit_status_ = exit_status;
        return found;
    }
    program_ = options_.agent_program.empty() ? own_program() : options_.agent_program;
    DIOMP_TRY(listen());
    last_tick_ = clock::now();
    tick_->arm(heartbeat_interval(lost_after_s_));
    start_more();
    return {};
}

status head::listen() {
    bool const is_all_here = std::ranges::all_of(hosts_, &host::here);
    auto opened = open_listener(
        options_.head_address.empty() && is_all_here ? "127.0.0.1" : options_.head_address);
    DIOMP_TRY(opened);
    addresses_ = std::move(opened.value().addresses);
    std::size_t const most_pending = most_pending_per_address * addresses_.size();
    raise_open_files(hosts_.size() * 4 + 2 * most_pending + 64);
    exit_status_.reset();
    auto pending = secure::pending_connections::create(
        std::move(opened.value().socket),
        [this] {
            return secure::handshake::respond(
                secret_, handshake_of({secure::role::head, 0}),
                {secure::role::agent, 0, static_cast<std::uint32_t>(hosts_.size())});
        },
        [this](const std::string &text) { output_->message(text); },
        {.most_silent = most_pending, .most_plausible = most_pending});
    DIOMP_TRY(pending);
    pending_.emplace(pending.take());
    auto token = loop_->add(pending_->fd(), EPOLLIN, [this](std::uint32_t) { on_pending(); });
    DIOMP_TRY(token);
    pending_token_ = token.value();
    return {};
}

/// None is needed for this machine. One that the user names is used for all hosts: it may do more
/// than to log in.
status head::find_shell(int &exit_status) {
    bool const named = options_.remote_shell != default_remote_shell;
    for (host &each : hosts_) {
        each.here = !named && is_own_name(each.share.name);
    }
    if (std::ranges::all_of(hosts_, &host::here)) {
        return {};
    }
    auto found = find_remote_shell(options_.remote_shell, exit_status);
    DIOMP_TRY(found);
    shell_ = found.take();
    return {};
}

void head::start_more() {
    while (now() == phase::running && next_to_start_ < hosts_.size() && starting_ < max_starting) {
        std::size_t const index = next_to_start_++;
        if (auto started = start_agent(index); !started) {
            fail_start(1,
                       error(OMPX_ERR_SYSTEM, fmt::format("host {}: {}", hosts_[index].share.name,
                                                          started.failure().message())));
        }
    }
}

status head::start_agent(std::size_t index) {
    host &which = hosts_[index];
    agent_invitation invitation{static_cast<int>(index), secret_.encode(), lost_after_s_,
                                signals_->original().ignored_list(), addresses_};
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends const ends = opened.take();
    std::string text = encode_invitation(invitation);
    // It fits: a pipe takes 64 KiB, and the agent refuses more.
    bool const is_written =
        write(ends.writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    secure::erase(text);
    secure::erase(invitation.secret);
    if (!is_written) {
        return system_error("write", errno);
    }
    unique_fd errors;
    auto number = output_->open_error_pipe(errors);
    if (!number) {
        return number.take_failure();
    }
    which.shell_output = number.value();
    spawn_request request;
    if (which.here) {
        request.path = "/bin/sh";
        request.arguments = {"sh", "-c"};
    } else {
        request.path = shell_.path;
        request.arguments = shell_.words;
        request.arguments.push_back(which.share.name);
    }
    request.arguments.push_back(
        remote_command(program_, {"--agent"}, std::getenv("LD_LIBRARY_PATH")));
    for (char **each = environ; *each != nullptr; ++each) {
        request.environment.emplace_back(*each);
    }
    request.standard_input = ends.reading.get();
    request.standard_output = errors.get(); // nothing of the ranks' comes here
    request.standard_error = errors.get();
    request.signals = signals_->original();
    request.open_files = original_open_files_;
    auto spawned = spawn(request);
    DIOMP_TRY(spawned);
    which.shell = spawned.take();
    guard_->watch(which.shell.pid());
    ++shells_;
    ++starting_;
    which.at = stage::starting;
    which.heard = clock::now();
    which.shell_fd = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, which.shell.pid(), 0)));
    auto token = loop_->add(which.shell_fd.get(), EPOLLIN,
                            [this, index](std::uint32_t) { on_shell_exit(index); });
    if (!token) {
        return token.take_failure();
    }
    which.shell_token = token.value();
    if (options_.verbose) {
        output_->message(fmt::format("host {}: ranks {} to {}, started by {} (pid {})",
                                     which.share.name, which.share.first_rank,
                                     which.share.first_rank + which.share.ranks - 1,
                                     request.arguments.front(), which.shell.pid()));
    }
    return {};
}

void head::on_pending() {
    for (auto &each : pending_->advance()) {
        admit(std::move(each));
    }
}

/// An agent of this job has connected. One that has done so already, or that came too late, is
/// closed.
void head::admit(secure::pending_connections::proven_connection from) {
    std::size_t const index = from.proven.peer.number;
    host &which = hosts_[index];
    if (which.at != stage::starting) {
        return;
    }
    auto link = frame_link::create(*loop_, *this, std::move(from.socket), std::move(from.proven),
                                   lost_after_s_);
    if (!link) {
        return; // the agent reports that the connection was closed
    }
    which.link = link.take();
    which.link->tag = static_cast<int>(index);
    which.heard = clock::now();
    which.at = stage::connected;
    --starting_;
    welcome(which);
    start_more();
}

void head::welcome(host &which) {
    if (now() != phase::running) {
        which.link->send(small_frame(frame_type::kill)); // it came too late
        return;
    }
    agent_setup setup;
    setup.world_size = static_cast<std::uint32_t>(options_.ranks);
    setup.first_rank = static_cast<std::uint32_t>(which.share.first_rank);
    setup.ranks = static_cast<std::uint32_t>(which.share.ranks);
    setup.bind = options_.bind;
    setup.verbose = options_.verbose;
    setup.job_id = job_id_;
    setup.host = which.share.name;
    std::error_code failure;
    setup.directory = std::filesystem::current_path(failure).string();
    const char *const path = std::getenv("PATH");
    setup.search_path = path != nullptr ? path : "";
    setup.output_dir = options_.output_dir;
    setup.command = options_.command;
    setup.environment = settings_;
    if (!remote_devices_.empty()) {
        auto const first = remote_devices_.begin() + which.share.first_rank;
        setup.remote_devices.assign(first, first + which.share.ranks);
    }
    which.link->send(encode_setup(setup));
}

void head::on_ready(host &which) {
    if (which.at != stage::connected) {
        return;
    }
    which.at = stage::ready;
    if (++ready_ < hosts_.size()) {
        return;
    }
    loop_->remove(pending_token_); // all are here: the port is closed
    pending_.reset();
    for (host &each : hosts_) {
        each.at = stage::running;
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
    // A shell that has put itself into the background is fine as long as the agent comes.
    if (which.at == stage::starting && !how->success()) {
        fail_start(1, error(OMPX_ERR_SYSTEM, explain_shell_exit(which, *how)));
        leave(which);
    }
}

std::string head::explain_shell_exit(const host &which, const exit_info &how) const {
    const std::string &name = which.share.name;
    if (auto const why = which.shell.start_failure()) {
        return fmt::format("host {}: {}", name, why->message());
    }
    std::string const shell = which.here ? "sh" : shell_.words.front();
    if (how.signal == 0 && how.code == 255) {
        return fmt::format("cannot reach host {}: {} exited with status 255; check that `{} {} "
                           "true` works without a password",
                           name, shell, options_.remote_shell, name);
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
