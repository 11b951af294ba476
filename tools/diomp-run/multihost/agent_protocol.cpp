// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace diomp::run {

namespace local = launch::local;

std::string encode_bootstrap(const agent_bootstrap &bootstrap) {
    std::string text =
        fmt::format("diomp-run {}\nindex {}\nsecret {}\ntimeout {}\n", agent_protocol_version,
                    bootstrap.index, bootstrap.secret, bootstrap.timeout_s);
    if (!bootstrap.ignored_signals.empty()) {
        text += fmt::format("ignore {}\n", bootstrap.ignored_signals);
    }
    for (const auto &[address, port] : bootstrap.addresses) {
        text += fmt::format("address {} {}\n", address, port);
    }
    return text.append(bootstrap_end);
}

result<agent_bootstrap> decode_bootstrap(const std::string &text) {
    std::istringstream lines(text);
    agent_bootstrap bootstrap;
    std::string word;
    std::uint32_t version = 0;
    if (!(lines >> word >> version) || word != "diomp-run") {
        return error(OMPX_ERR_ARG, "--agent is for diomp-run itself, which uses it on other hosts",
                     "to run on several hosts use diomp-run --hosts");
    }
    if (version != agent_protocol_version) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("this diomp-run has protocol version {}, the one that has started it "
                        "version {}",
                        agent_protocol_version, version),
            "use the same installation on all hosts; --agent-program names it");
    }
    while (lines >> word && word != "end") {
        if (word == "index") {
            lines >> bootstrap.index;
        } else if (word == "secret") {
            lines >> bootstrap.secret;
        } else if (word == "timeout") {
            lines >> bootstrap.timeout_s;
        } else if (word == "ignore") {
            lines >> bootstrap.ignored_signals;
        } else if (word == "address") {
            std::string address;
            std::string port;
            lines >> address >> port;
            bootstrap.addresses.emplace_back(address, port);
        }
    }
    if (word != "end" || bootstrap.secret.empty() || bootstrap.addresses.empty()) {
        return error(OMPX_ERR_SYSTEM, "standard input has ended before its end mark",
                     "the remote shell must pass its standard input on");
    }
    return bootstrap;
}

std::string encode_setup(const agent_setup &setup) {
    frame_writer frame(frame_type::setup);
    frame.number(setup.world_size);
    frame.number(static_cast<std::uint32_t>(setup.block.first_rank));
    frame.number(static_cast<std::uint32_t>(setup.block.ranks));
    frame.number(static_cast<std::uint8_t>(setup.bind));
    frame.number(static_cast<std::uint8_t>(setup.verbose ? 1 : 0));
    for (const std::string *const text : {&setup.job_id, &setup.block.name, &setup.directory,
                                          &setup.search_path, &setup.output_dir}) {
        frame.text(*text);
    }
    for (const auto *const texts : {&setup.command, &setup.remote_devices}) {
        frame.number(static_cast<std::uint32_t>(texts->size()));
        for (const std::string &each : *texts) {
            frame.text(each);
        }
    }
    frame.number(static_cast<std::uint32_t>(setup.environment.size()));
    for (const auto &[name, value] : setup.environment) {
        frame.text(name);
        frame.text(value);
    }
    return frame.take();
}

result<agent_setup> decode_setup(frame_reader &frame) {
    agent_setup setup;
    setup.world_size = frame.number<std::uint32_t>();
    auto const first_rank = frame.number<std::uint32_t>();
    auto const ranks = frame.number<std::uint32_t>();
    setup.block.first_rank = static_cast<int>(first_rank);
    setup.block.ranks = static_cast<int>(ranks);
    setup.bind = static_cast<binding>(frame.number<std::uint8_t>());
    setup.verbose = frame.number<std::uint8_t>() != 0;
    for (std::string *const text : {&setup.job_id, &setup.block.name, &setup.directory,
                                    &setup.search_path, &setup.output_dir}) {
        *text = frame.text();
    }
    for (auto *const texts : {&setup.command, &setup.remote_devices}) {
        auto const count = frame.number<std::uint32_t>();
        for (std::uint32_t i = 0; i < count && frame.ok(); ++i) {
            texts->emplace_back(frame.text());
        }
    }
    auto const variables = frame.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < variables && frame.ok(); ++i) {
        std::string name(frame.text());
        setup.environment.emplace_back(std::move(name), frame.text());
    }
    bool const devices_fit = setup.remote_devices.empty() || setup.remote_devices.size() == ranks;
    if (!frame.ok() || ranks == 0 || setup.command.empty() || !devices_fit ||
        ranks > setup.world_size || first_rank > setup.world_size - ranks) {
        return error(OMPX_ERR_SYSTEM, "malformed set-up from the head");
    }
    return setup;
}

double heartbeat_interval(double timeout_s) { return std::clamp(timeout_s / 6, 0.05, 5.0); }

std::vector<std::string> entry_frames(const std::vector<local::entry> &items) {
    std::vector<std::string> frames = local::encode_entries(items);
    for (std::string &frame : frames) {
        frame[0] = static_cast<char>(
            frame_type::entries); // both protocols have the same encoding after the type byte
    }
    return frames;
}

} // namespace diomp::run
