// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/world.h"

#include "base/hex.h"
#include "base/panic.h"
#include "launch/host.h"
#include "launch/launch.h"
#include "launch/long_value.h"
#include "launch/nodes.h"
#include "offload/remote/control.h"
#include "offload/remote/protocol.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/create.h"
#include "transport/find_node.h"
#include "transport/node_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <sys/mman.h>

namespace diomp::offload::remote {
namespace {

/// Exchanges the key-value pairs of all ranks: clients gather those of their sessions, exchange
/// them with other clients, and distribute all.
class control_launcher final : public launch::launcher {
public:
    control_launcher(std::vector<control_peer> peers, const world_position &position,
                     double timeout_s, output_handler on_output = {}, client_exchange exchange = {})
        : peers_(std::move(peers)), is_client_(position.rank.value() < position.num_clients),
          timeout_s_(timeout_s), on_output_(std::move(on_output)), exchange_(std::move(exchange)) {
        info_.rank = position.rank;
        info_.size = position.size;
        info_.host = launch::host_name();
        info_.job_id = launch::make_job_id(info_.host);
        info_.local_ranks = {info_.rank};
        info_.is_split = position.scope == host_scope::one_host;
    }

    [[nodiscard]] const launch::job_info &info() const override { return info_; }

    status put(std::string_view key, std::string_view value) override {
        unpublished_.insert_or_assign({info_.rank.value(), std::string(key)}, std::string(value));
        return {};
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        std::lock_guard const guard(mutex_);
        auto const found = values_.find({owner.value(), std::string(key)});
        if (found == values_.end()) {
            return error(OMPX_ERR_STATE,
                         fmt::format("rank {} has not published '{}'", owner.value(), key));
        }
        return found->second;
    }

    status fence() override {
        if (!is_client_) {
            DIOMP_TRY(send_unpublished());
        }
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            DIOMP_TRY(receive_from(i));
        }
        if (has_ended_) {
            return {};
        }
        if (exchange_) {
            DIOMP_TRY(exchange_unpublished());
        }
        if (is_client_) {
            DIOMP_TRY(send_unpublished());
        }
        std::lock_guard const guard(mutex_);
        unpublished_.merge(values_);
        values_ = std::move(unpublished_);
        unpublished_.clear();
        return {};
    }

    /// A session has started the runtime of its regions instead of entering the fence; the
    /// sessions of the other clients have too.
    [[nodiscard]] bool has_ended() const { return has_ended_; }
    status finalize() override { return {}; }
    void abort(int /*code*/, std::string_view /*message*/) noexcept override {}
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "device service"; }

private:
    using key = std::pair<int, std::string>; ///< owner, name

    static void append(packet_writer &to, const key &name, const std::string &value) {
        to.number(static_cast<std::uint32_t>(name.first));
        to.text(name.second);
        to.text(value);
    }
    void add_entry(packet_reader &from) {
        auto const owner = static_cast<int>(from.number<std::uint32_t>());
        std::string const name(from.text());
        unpublished_.insert_or_assign({owner, name}, std::string(from.text()));
    }

    status exchange_unpublished() {
        packet_writer own(frame::entry);
        for (auto const &[name, value] : unpublished_) {
            append(own, name, value);
        }
        auto others = exchange_(own.take());
        DIOMP_TRY(others);
        for (std::string const &each : others.value()) {
            packet_reader packet(each);
            static_cast<void>(packet.type<frame>());
            while (packet.ok() && !packet.at_end()) {
                add_entry(packet);
            }
            if (!packet.ok()) {
                return error(OMPX_ERR_ARG, "malformed start-up values of another rank");
            }
        }
        return {};
    }

    status send_unpublished() {
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            for (auto const &[name, value] : unpublished_) {
                packet_writer packet(frame::entry);
                append(packet, name, value);
                DIOMP_TRY(send_to(i, packet.take()));
            }
            DIOMP_TRY(send_to(i, packet_writer(frame::fence).take()));
        }
        return {};
    }

    [[nodiscard]] error labelled(std::size_t peer, const error &failure) const {
        return {failure.code(), fmt::format("{}: {}", peers_[peer].label, failure.message()),
                failure.remedy()};
    }

    /// A service says how a session has ended before it closes the connection.
    status send_to(std::size_t peer, const std::string &packet) {
        status const sent = peers_[peer].connection->send(packet);
        if (sent) {
            return {};
        }
        DIOMP_TRY(receive_from(peer));
        return labelled(peer, sent.failure());
    }

    status receive_from(std::size_t peer) {
        for (;;) {
            auto bytes = peers_[peer].connection->receive(timeout_s_);
            if (!bytes) {
                return labelled(peer, bytes.failure());
            }
            packet_reader packet(bytes.value());
            auto const type = packet.type<frame>();
            if (type == frame::output && on_output_) {
                on_output_(peer, bytes.value());
                continue;
            }
            switch (type) {
            case frame::entry:
                add_entry(packet);
                if (!packet.ok() || !packet.at_end()) {
                    return labelled(peer, error(OMPX_ERR_ARG, "malformed start-up value"));
                }
                break;
            case frame::fence:
                return {};
            case frame::done:
                has_ended_ = true;
                return {};
            case frame::ended:
                return labelled(peer, error(OMPX_ERR_PEER, std::string(packet.text())));
            default:
                return labelled(peer, error(OMPX_ERR_ARG, "unexpected frame during start-up"));
            }
        }
    }

    launch::job_info info_;
    std::vector<control_peer> peers_;
    bool is_client_;
    bool has_ended_ = false;
    double timeout_s_;
    output_handler on_output_;
    client_exchange exchange_;
    std::map<key, std::string> unpublished_;
    std::mutex mutex_; ///< protects values_
    std::map<key, std::string> values_;
};

constexpr const char *device_memory_key = "device memory";
constexpr const char *node_key = "node";
constexpr const char *off = "off"; ///< value at rank 0 if the user has disabled it

/// Next to the arena of a job of ranks that the same process may belong to.
std::uint64_t arena_base() {
    return transport::arena::default_base() + transport::arena::max_span();
}

} // namespace

std::vector<world_rank> sessions_of(world_rank client, std::span<const int> num_devices) {
    int const num_clients = static_cast<int>(num_devices.size());
    auto const before = num_devices.first(client.index());
    int const first = std::accumulate(before.begin(), before.end(), num_clients);
    int const num_own = num_devices[client.index()];
    std::vector<world_rank> sessions;
    sessions.reserve(static_cast<std::size_t>(num_own));
    for (int index = 0; index < num_own; ++index) {
        sessions.emplace_back(first + index);
    }
    return sessions;
}

client_exchange make_client_exchange(launch::launcher &job) {
    // Copies of the function share the number.
    return [&job, round = std::make_shared<int>(0)](
               const std::string &own) -> result<std::vector<std::string>> {
        std::string const key = fmt::format("remote.{}", (*round)++);
        // Values of PMIx are text.
        DIOMP_TRY(launch::publish_long_value(job, key, to_hex(std::as_bytes(std::span(own)))));
        DIOMP_TRY(job.fence());
        std::vector<std::string> others;
        for (int each = 0; each < job.info().size; ++each) {
            if (world_rank(each) != job.info().rank) {
                auto value = launch::fetch_long_value(job, key, world_rank(each));
                DIOMP_TRY(value);
                std::vector<std::byte> const bytes = from_hex(value.value());
                others.emplace_back(reinterpret_cast<const char *>(bytes.data()), bytes.size());
            }
        }
        return others;
    };
}

std::unique_ptr<launch::launcher> make_client_launcher(std::vector<control_peer> sessions,
                                                       const world_position &position,
                                                       double timeout_s, output_handler on_output,
                                                       client_exchange exchange) {
    return std::make_unique<control_launcher>(std::move(sessions), position, timeout_s,
                                              std::move(on_output), std::move(exchange));
}

status relay_runtime_start(control_peer session, const world_position &position, double timeout_s,
                           output_handler on_output, client_exchange exchange) {
    control_launcher relay({std::move(session)}, position, timeout_s, std::move(on_output),
                           std::move(exchange));
    while (!relay.has_ended()) {
        DIOMP_TRY(relay.fence());
    }
    return {};
}

std::unique_ptr<launch::launcher> make_session_launcher(control_connection &client,
                                                        const world_position &position,
                                                        double timeout_s) {
    return std::make_unique<control_launcher>(
        std::vector{control_peer{&client, "the program of this session"}}, position, timeout_s);
}

result<std::unique_ptr<world>> world::create(std::unique_ptr<launch::launcher> launcher,
                                             const world_options &options, world_handlers handlers,
                                             const transport::failure_handler &on_failure) {
    std::unique_ptr<world> made(new world);
    made->launcher_ = std::move(launcher);
    made->num_clients_ = options.num_clients;
    made->num_devices_ = options.num_devices;
    made->gpus_ = options.gpus;
    DIOMP_TRY(made->find_node(options));
    transport::arena_options arena_options;
    arena_options.base = arena_base();
    arena_options.usable_bytes = options.memory_bytes;
    arena_options.control_bytes = transport::control_bytes_per_rank();
    arena_options.size_remedy = "start the services of remote devices with a smaller --memory";
    arena_options.one_slot_per_rank = true; // an address tells the client which session has it
    auto arena = transport::arena::create(*made->launcher_, arena_options);
    DIOMP_TRY(arena);
    made->arena_ = arena.take();
    if (options.may_share_memory && made->is_session(made->rank())) {
        pass_slot(*made->launcher_, *made->arena_, made->num_clients_);
    }
    transport::conduit_options conduit_options;
    conduit_options.network = options.conduit;
    conduit_options.dead_peer_timeout_s = options.dead_peer_timeout_s;
    conduit_options.device_memory = options.network_device_memory;
    conduit_options.encrypts = options.encrypts_data;
    auto conduit = transport::create("auto", *made->launcher_, *made->arena_, conduit_options);
    DIOMP_TRY(conduit);
    made->conduit_ = conduit.take();
    messaging::engine_options engine_options;
    engine_options.spin_count = options.spin_count;
    engine_options.warn_after_s = 0; // kernels may run for any time
    made->engine_ = std::make_unique<messaging::engine>(*made->conduit_, engine_options);
    if (auto *const peers = made->conduit_->peers(); peers != nullptr) {
        peers->report_failures_to(on_failure);
    }
    made->add_handlers(std::move(handlers));
    made->engine_->start();
    DIOMP_TRY(made->publish_device_memory(options));
    DIOMP_TRY(made->launcher_->fence()); // all ranks have registered their handlers
    DIOMP_TRY(made->collect_device_memory());
    if (made->watch_ != nullptr) {
        made->watch_->start(on_failure);
    }
    return made;
}

status world::find_node(const world_options &options) {
    int const num_sessions = size() - num_clients_;
    // UCX may register the memory of a session before the runtime of its regions maps it.
    bool const is_possible = options.conduit == "tcp" && options.node_size != 1 && num_sessions > 1;
    if (is_possible) {
        auto found = transport::find_node(
            *launcher_, {.may_share = options.may_share_memory && is_session(rank()),
                         .max_ranks = options.node_size});
        DIOMP_TRY(found);
        std::vector<world_rank> ranks;
        ranks.reserve(found.value().ranks.size());
        std::vector<transport::peer_process> others;
        for (transport::peer_process const &each : found.value().ranks) {
            ranks.push_back(each.rank);
            if (each.rank != rank()) {
                others.push_back(each);
            }
        }
        if (!others.empty()) {
            auto watch = transport::node_watch::create(others);
            DIOMP_TRY(watch);
            watch_ = watch.take();
        }
        launcher_ = launch::set_node(std::move(launcher_), std::move(ranks), found.value().name);
    }
    return launcher_->put(node_key, launcher_->info().job_id);
}

void world::add_handlers(world_handlers handlers) {
    auto const add = [this](messaging::handler &wanted, transport::handler_id number) {
        if (!wanted) {
            wanted = [](const transport::message &) {};
        }
        if (engine_->add_handler(std::move(wanted)) != number) {
            panic("unexpected handler id from the engine");
        }
    };
    add(handlers.batch, batch_handler);
    add(handlers.reply, reply_handler);
    add(handlers.copy, copy_handler);
    add(handlers.copy_reply, copy_reply_handler);
}

status world::publish_device_memory(const world_options &options) {
    std::string value;
    if (!is_session(rank())) {
        value = options.network_device_memory == off ? off : "";
    } else if (options.device_memory && conduit_->transfers_any_device_memory() &&
               conduit_->supports_memory_kind(*options.device_memory)) {
        value = std::to_string(static_cast<int>(*options.device_memory));
    }
    return launcher_->put(device_memory_key, value);
}

status world::collect_device_memory() {
    for (int each = 0; each < size(); ++each) {
        auto node = launcher_->get(world_rank(each), node_key);
        DIOMP_TRY(node);
        node_names_.push_back(node.take());
    }
    device_memory_.resize(static_cast<std::size_t>(size()));
    auto client_choice = launcher_->get(world_rank(0), device_memory_key);
    DIOMP_TRY(client_choice);
    for (int each = num_clients_; each < size() && client_choice.value() != off; ++each) {
        auto value = launcher_->get(world_rank(each), device_memory_key);
        DIOMP_TRY(value);
        for (auto const kind : {transport::memory_kind::host, transport::memory_kind::cuda,
                                transport::memory_kind::hip}) {
            if (value.value() == std::to_string(static_cast<int>(kind))) {
                device_memory_[static_cast<std::size_t>(each)] = kind;
            }
        }
    }
    return {};
}

world::~world() {
    if (engine_) {
        engine_->stop();
    }
}

world_rank world::rank() const { return launcher_->info().rank; }

int world::size() const { return launcher_->info().size; }

std::optional<world_rank> world::session_with(std::uint64_t address) const {
    std::uint64_t const from_base = address - arena_->base();
    if (from_base >= arena_->span_bytes()) {
        return std::nullopt;
    }
    world_rank const owner(static_cast<int>(from_base / arena_->slot_bytes()));
    return is_session(owner) ? std::optional(owner) : std::nullopt;
}

status world::name_device(world_rank session, status done) const {
    if (done) {
        return done;
    }
    return error(done.failure().code(),
                 fmt::format("remote device {}{}: {}", session_number(session),
                             num_clients_ > 1 ? " of the job" : "",
                             loss_without_rank(session, done.failure().message())),
                 done.failure().remedy());
}

std::string loss_without_rank(world_rank lost, std::string why) {
    std::string const name = fmt::format("rank {} on ", lost.value());
    return why.starts_with(name) ? "its session on " + why.substr(name.size()) : std::move(why);
}

std::uint64_t world::memory_of(world_rank owner) const {
    return reinterpret_cast<std::uint64_t>(arena_->slot(owner));
}

status world::check_present(world_rank peer) const {
    return watch_ != nullptr && watch_->has_ended(peer)
               ? status(error(OMPX_ERR_PEER, "its session has ended"))
               : status();
}

status world::map_again(world_rank session, void *to) const {
    auto const &node = launcher_->info().local_ranks;
    auto const found = std::ranges::find(node, session);
    if (found == node.end()) {
        return error(OMPX_ERR_RANK, fmt::format("rank {} is on another node", session.value()));
    }
    DIOMP_TRY(arena_->map_again(local_rank(static_cast<int>(found - node.begin())), 0,
                                arena_->usable_bytes(), to));
    static_cast<void>(::madvise(to, arena_->usable_bytes(), MADV_DONTDUMP)); // as the arena is
    return {};
}

void world::freeze() {
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        peers->freeze();
    }
}

} // namespace diomp::offload::remote
