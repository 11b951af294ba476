// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/find_node.h"

#include "base/hex.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "launch/launch.h"
#include "launch/same_node.h"
#include "transport/fd_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace diomp::transport {
namespace {

constexpr const char *processes_key = "find_node.processes";
constexpr const char *socket_key = "find_node.socket";
constexpr const char *name_key = "find_node.name";
constexpr const char *pid_key = "find_node.pid";
constexpr const char *ranks_key = "find_node.ranks";

std::string socket_of(const std::string &name) { return "diomp-node-" + name; }

/// Memory that contains the name.
unique_fd make_probe(const std::string &name) {
    unique_fd made(::memfd_create("diomp-node", MFD_CLOEXEC));
    bool const is_good = made.valid() && ::write(made.get(), name.data(), name.size()) ==
                                             static_cast<ssize_t>(name.size());
    return is_good ? std::move(made) : unique_fd();
}

bool is_probe(int fd, const std::string &name) {
    std::string content(name.size() + 1, '\0');
    auto const length = ::pread(fd, content.data(), content.size(), 0);
    return length == static_cast<ssize_t>(name.size()) && content.starts_with(name);
}

class node_finder {
public:
    node_finder(launch::launcher &launcher, int max_ranks)
        : launcher_(launcher), self_(launcher.info().rank), max_ranks_(max_ranks) {}

    result<found_node> run(bool may_share) {
        DIOMP_TRY(publish(may_share));
        DIOMP_TRY(launcher_.fence());
        DIOMP_TRY(find_candidates());
        send_probe();
        DIOMP_TRY(launcher_.fence());
        DIOMP_TRY(confirm());
        DIOMP_TRY(launcher_.fence());
        return read_confirmed();
    }

private:
    status publish(bool may_share) {
        auto made = random_name();
        DIOMP_TRY(made);
        name_ = made.take();
        auto other = random_name();
        DIOMP_TRY(other);
        socket_ = other.take();
        std::string const surroundings =
            may_share && has_process_descriptors() ? describe_surroundings() : "";
        if (!surroundings.empty()) {
            auto opened = listen_for_peers(socket_of(socket_), launcher_.info().size);
            listener_ = opened ? opened.take() : unique_fd();
        }
        DIOMP_TRY(launcher_.put(processes_key, listener_.valid() ? surroundings : ""));
        DIOMP_TRY(launcher_.put(socket_key, socket_));
        DIOMP_TRY(launcher_.put(pid_key, std::to_string(::getpid())));
        return launcher_.put(name_key, name_);
    }

    /// The ranks that appear to be on the node of this one.
    status find_candidates() {
        candidates_ = {self_};
        auto own = launcher_.get(self_, processes_key);
        DIOMP_TRY(own);
        if (own.value().empty()) {
            return {};
        }
        candidates_.clear();
        for (int each = 0; each < launcher_.info().size; ++each) {
            auto theirs = launcher_.get(world_rank(each), processes_key);
            DIOMP_TRY(theirs);
            if (theirs.value() == own.value()) {
                candidates_.emplace_back(each);
            }
        }
        if (max_ranks_ > 0) {
            auto const position = std::ranges::find(candidates_, self_) - candidates_.begin();
            auto const first = position / max_ranks_ * max_ranks_;
            candidates_.erase(candidates_.begin(), candidates_.begin() + first);
            candidates_.resize(std::min(candidates_.size(), static_cast<std::size_t>(max_ranks_)),
                               self_);
        }
        return {};
    }

    /// Passes memory to the first candidate.
    void send_probe() {
        if (candidates_.front() == self_) {
            return;
        }
        unique_fd const probe = make_probe(socket_);
        auto const first = launcher_.get(candidates_.front(), socket_key);
        std::string const own = std::to_string(self_.value());
        if (!probe.valid() || !first) {
            return;
        }
        int const fd = probe.get();
        if (status const sent =
                send_descriptors(socket_of(first.value()), std::as_bytes(std::span(own)), {&fd, 1});
            !sent) {
            log(log_level::debug, "rank {} does not share memory with rank {}: {}", self_.value(),
                candidates_.front().value(), sent.failure().message());
        }
    }

    /// The first candidate publishes which others have passed memory to it.
    status confirm() {
        if (candidates_.front() != self_) {
            return {};
        }
        std::vector<int> confirmed{self_.value()};
        while (candidates_.size() > 1) {
            auto bundle = receive_descriptors(listener_.get(), 0);
            if (!bundle) {
                break;
            }
            int sender = -1;
            auto const *const text = reinterpret_cast<const char *>(bundle.value().bytes.data());
            std::from_chars(text, text + bundle.value().bytes.size(), sender);
            if (std::ranges::find(candidates_, world_rank(sender)) == candidates_.end() ||
                bundle.value().fds.size() != 1) {
                continue;
            }
            auto name = launcher_.get(world_rank(sender), socket_key);
            if (name && is_probe(bundle.value().fds.front().get(), name.value())) {
                confirmed.push_back(sender);
            }
        }
        std::ranges::sort(confirmed);
        return launcher_.put(ranks_key, fmt::format("{}", fmt::join(confirmed, " ")));
    }

    result<found_node> read_confirmed() {
        auto text = launcher_.get(candidates_.front(), ranks_key);
        DIOMP_TRY(text);
        found_node found;
        char const *at = text.value().data();
        char const *const end = at + text.value().size();
        for (int rank = 0; at < end; ++at) { // after each number a space
            at = std::from_chars(at, end, rank).ptr;
            auto pid = launcher_.get(world_rank(rank), pid_key);
            DIOMP_TRY(pid);
            found.ranks.push_back({world_rank(rank), std::stoi(pid.value())});
        }
        if (std::ranges::find(found.ranks, self_, &peer_process::rank) == found.ranks.end()) {
            return found_node{{{self_, ::getpid()}}, name_};
        }
        auto name = launcher_.get(candidates_.front(), name_key);
        DIOMP_TRY(name);
        found.name = name.take();
        return found;
    }

    launch::launcher &launcher_;
    world_rank self_;
    int max_ranks_;
    std::string name_;   ///< of the node, if this rank is its first; in no name that others see
    std::string socket_; ///< every process of the host sees it while this rank listens
    unique_fd listener_;
    std::vector<world_rank> candidates_;
};

} // namespace

std::string describe_surroundings() {
    std::string text = fmt::format("{}/{}", launch::node_identity(), ::geteuid());
    for (const char *const kind : {"pid", "user", "net"}) {
        struct stat about{};
        if (::stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &about) != 0) {
            return {};
        }
        text += fmt::format("/{}", about.st_ino);
    }
    return text;
}

result<std::string> random_name() {
    std::array<std::byte, 16> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
        return system_error("getrandom", errno);
    }
    return to_hex(random);
}

result<found_node> find_node(launch::launcher &launcher, const node_search &how) {
    return node_finder(launcher, how.max_ranks).run(how.may_share);
}

} // namespace diomp::transport
