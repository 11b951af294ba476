// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_services.h"

#include "core/options.h"
#include "core/own_process.h"
#include "core/rank_terminator.h"
#include "multihost/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {
namespace {

constexpr std::string_view program_name = "diomp-deviced";
/// Start of the line that a service prints when it listens: "<announcement>N at ADDRESS:PORT".
/// Remote shells print other lines.
constexpr std::string_view announcement = "diomp-deviced lends ";
/// Start of the line that a service prints when it ends, followed by the number of its sessions.
constexpr std::string_view session_report = "diomp-deviced has had ";
/// Time for a service to end its sessions and to remove its images.
constexpr double stop_limit_s = 2;

/// Parses "N at ADDRESS:PORT".
std::optional<device_service> parse_announcement(std::string_view text) {
    device_service found;
    constexpr std::string_view at = " at ";
    auto const number = [](std::string_view digits, int &value) {
        auto const parsed = std::from_chars(digits.begin(), digits.end(), value);
        return parsed.ec == std::errc() && parsed.ptr == digits.end() && value > 0;
    };
    auto const middle = text.find(at);
    auto const colon = text.rfind(':');
    if (middle == std::string_view::npos || colon == std::string_view::npos || colon < middle ||
        !number(text.substr(0, middle), found.devices) ||
        !number(text.substr(colon + 1), found.port)) {
        return std::nullopt;
    }
    auto address = text.substr(middle + at.size(), colon - middle - at.size());
    if (address.starts_with('[') && address.ends_with(']')) {
        address = address.substr(1, address.size() - 2);
    }
    found.address = address;
    return found;
}

std::string sibling_path(const std::string &program) {
    auto const slash = program.rfind('/');
    return slash == std::string::npos ? std::string(program_name)
                                      : program.substr(0, slash + 1).append(program_name);
}

} // namespace

device_services::~device_services() {
    for (auto const &each : services_) {
        loop_.remove(each->output_token);
        if (each->process.is_watched()) {
            each->process.signal_group(SIGKILL);
            each->process.reap();
        }
    }
}

result<std::unique_ptr<device_services>> device_services::create(event_loop &loop,
                                                                 services_plan plan, handlers on) {
    std::unique_ptr<device_services> made(
        new device_services(loop, std::move(plan), std::move(on)));
    auto limit = add_timer(loop, [self = made.get()] { self->on_limit(); });
    DIOMP_TRY(limit);
    made->limit_ = limit.take();
    return made;
}

status device_services::start(int &exit_status) {
    for (const device_host &host : services_for(plan_.hosts)) {
        services_.push_back(std::make_unique<service>());
        services_.back()->host = host;
        DIOMP_TRY(resolve_service(*services_.back()));
    }
    if (!std::ranges::all_of(services_, [](auto const &each) { return each->is_local; })) {
        auto shell = find_remote_shell(plan_.remote_shell, exit_status);
        DIOMP_TRY(shell);
        shell_ = shell.take();
    }
    for (auto const &each : services_) {
        if (auto started = start_one(*each); !started) {
            return error(OMPX_ERR_SYSTEM,
                         fmt::format("host {}: {}", each->host.name, started.failure().message()),
                         started.failure().remedy());
        }
    }
    limit_->arm(plan_.start_limit_s);
    return {};
}

status device_services::resolve_service(service &which) const {
    const std::string &name = which.host.name;
    auto const at = name.rfind('@');
    resolved_host resolved = resolve_host(name.substr(at == std::string::npos ? 0 : at + 1));
    which.is_local =
        resolved.is_local && at == std::string::npos; // another user's account needs a log-in
    which.address = std::move(resolved.address);
    if (which.is_local && plan_.ranks_are_local) {
        which.address = "127.0.0.1";
    } else if (which.is_local && which.address.empty()) {
        return error(OMPX_ERR_ARG,
                     fmt::format("--remote-devices: ranks on other hosts cannot reach '{}'", name),
                     "name this machine by an address that they reach");
    }
    return {};
}

status device_services::start_one(service &which) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends input = opened.take();
    DIOMP_TRY(send_settings(which, input));
    opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends output = opened.take();
    DIOMP_TRY(stop_blocking(output.reading));
    DIOMP_TRY(which.process.start(request_for(which, input.reading.get(), output.writing.get())));
    ++running_;
    which.input = std::move(input.writing);
    which.output = std::move(output.reading);
    DIOMP_TRY(which.process.watch(loop_, [this, &which] { on_exit(which); }));
    auto on_text =
        loop_.add(which.output.get(), EPOLLIN, [this, &which](auto) { on_output(which); });
    DIOMP_TRY(on_text);
    which.output_token = on_text.value();
    return {};
}

/// Writes the settings before the service is started, so they must fit into the pipe.
status device_services::send_settings(service &which, const pipe_ends &input) const {
    std::string const text = plan_.settings + '\0';
    DIOMP_TRY(stop_blocking(input.writing));
    if (write(input.writing.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("DIOMP_* variables and those of -x are too long for the service of {}",
                        which.host.name));
    }
    return {};
}

std::vector<std::string> device_services::service_arguments(const service &which) const {
    bool const processors = which.host.kind == "cpu";
    std::vector<std::string> arguments{"--attached",
                                       "--port",
                                       "0",
                                       "--listen",
                                       which.address.empty() ? "ssh" : which.address,
                                       "--devices",
                                       processors ? std::to_string(which.host.devices)
                                                  : which.host.kind};
    if (std::string ignored = plan_.signals.ignored_list(); !ignored.empty()) {
        arguments.insert(arguments.end(), {"--ignore-signals", std::move(ignored)});
    }
    return arguments;
}

spawn_request device_services::request_for(const service &which, int input, int output) const {
    spawn_request request;
    if (which.is_local) {
        request.path = sibling_path(own_program());
        request.arguments = service_arguments(which);
        request.arguments.insert(request.arguments.begin(), std::string(program_name));
    } else {
        request.path = shell_.path;
        request.arguments = shell_.words;
        request.arguments.push_back(which.host.name);
        request.arguments.push_back(remote_command(
            sibling_path(plan_.program), service_arguments(which), std::getenv("LD_LIBRARY_PATH")));
    }
    for (char **each = environ; *each != nullptr; ++each) {
        request.environment.emplace_back(*each);
    }
    request.standard_input = input;
    request.standard_output = output;
    request.standard_error = output;
    request.signals = plan_.signals;
    request.open_files = plan_.open_files;
    return request;
}

std::vector<device_service> device_services::listening() const {
    std::vector<device_service> found;
    for (auto const &each : services_) {
        if (each->port > 0) {
            found.push_back({each->address, each->port, each->host.devices});
        }
    }
    return found;
}

bool device_services::owns(pid_t pid) const {
    return std::ranges::any_of(services_,
                               [pid](auto const &each) { return each->process.pid() == pid; });
}

// ---- Output of the services

void device_services::on_output(service &which) {
    std::array<char, 4096> buffer{};
    ssize_t size = 0;
    while ((size = read(which.output.get(), buffer.data(), buffer.size())) > 0) {
        which.unfinished.append(buffer.data(), static_cast<std::size_t>(size));
        for (std::size_t end = 0; (end = which.unfinished.find('\n')) != std::string::npos;) {
            std::string line = which.unfinished.substr(0, end);
            which.unfinished.erase(0, end + 1);
            on_line(which, std::move(line));
        }
    }
    if (size == 0 || errno != EAGAIN) {
        loop_.remove(which.output_token);
    }
}

void device_services::on_line(service &which, std::string line) {
    if (line.starts_with(session_report)) {
        std::string_view const number = std::string_view(line).substr(session_report.size());
        long sessions = 0;
        std::from_chars(number.begin(), number.end(), sessions);
        which.sessions = sessions;
        return;
    }
    if (!line.starts_with(announcement) || which.port > 0) {
        on_.on_text(fmt::format("{}: {}", which.host.name, line));
        return;
    }
    auto service = parse_announcement(std::string_view(line).substr(announcement.size()));
    if (!service) {
        fail(error(OMPX_ERR_SYSTEM,
                   fmt::format("host {}: {} printed '{}'", which.host.name, program_name, line),
                   "use the same version on all hosts"));
        return;
    }
    if (service->devices < which.host.devices) {
        fail(
            error(OMPX_ERR_ARG, fmt::format("host {} has {} {} device{}, {} are requested",
                                            which.host.name, service->devices, which.host.kind,
                                            service->devices == 1 ? "" : "s", which.host.devices)));
        return;
    }
    which.port = service->port;
    which.address = std::move(service->address);
    which.host.devices = which.host.devices == 0 ? service->devices : which.host.devices;
    if (++listening_ == services_.size()) {
        limit_->disarm();
    }
}

bool device_services::unused() const {
    return std::ranges::all_of(services_, [](auto const &each) { return each->sessions == 0; });
}

// ---- End of the services

void device_services::poll() {
    for (auto const &each : services_) {
        on_exit(*each);
    }
}

void device_services::on_exit(service &which) {
    auto const how = which.process.is_watched() ? which.process.exit() : std::nullopt;
    if (!how) {
        return;
    }
    which.process.unwatch();
    on_output(which); // handles its remaining output first
    loop_.remove(which.output_token);
    auto const why = which.process.reap();
    --running_;
    if (phase_ < phase::stopping) {
        fail(why ? error(OMPX_ERR_SYSTEM,
                         fmt::format("host {}: {}", which.host.name, why->message()), why->remedy())
                 : error(OMPX_ERR_PEER, explain(which, *how)));
    }
}

std::string device_services::explain(const service &which, const exit_info &how) const {
    const std::string &name = which.host.name;
    if (which.port > 0) {
        return fmt::format("the device service of host {} is gone: {} {}", name,
                           which.is_local ? program_name : shell_.words.front(), describe(how));
    }
    if (!which.is_local && how.signal == 0 && how.code == 255) {
        return fmt::format("cannot reach host {}: {} exited with status 255; check that `{} {} "
                           "true` works without a password",
                           name, shell_.words.front(), plan_.remote_shell, name);
    }
    if (!which.is_local && how.signal == 0 && (how.code == 126 || how.code == 127)) {
        return fmt::format("host {} cannot execute {} ({} exited with status {}); install DiOMP "
                           "there, or name diomp-run there with --agent-program",
                           name, sibling_path(plan_.program), shell_.words.front(), how.code);
    }
    return fmt::format("host {}: {} {} before it lent devices", name,
                       which.is_local ? program_name : shell_.words.front(), describe(how));
}

void device_services::fail(error why) {
    if (phase_ == phase::serving) {
        phase_ = phase::failed;
        limit_->disarm();
        on_.failed(why);
    }
}

void device_services::on_limit() {
    if (phase_ < phase::stopping) {
        auto const late =
            std::ranges::find_if(services_, [](auto &each) { return each->port == 0; });
        fail(error(OMPX_ERR_TIMEOUT,
                   fmt::format("host {}: no device service within {:g} s", (*late)->host.name,
                               plan_.start_limit_s),
                   "DIOMP_TIMEOUT sets the limit"));
        return;
    }
    phase_ = phase_ == phase::stopping ? phase::killed : phase::gave_up;
    for (auto const &each : services_) {
        each->process.signal_group(SIGKILL);
    }
    limit_->arm(kill_limit_s);
}

void device_services::stop() {
    phase_ = phase::stopping;
    for (auto const &each : services_) {
        each->input.reset();
    }
    limit_->arm(stop_limit_s);
}

} // namespace diomp::run
