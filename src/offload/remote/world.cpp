// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/world.h"

#include "base/panic.h"
#include "launch/host.h"
#include "launch/launch.h"
#include "offload/remote/control.h"
#include "offload/remote/protocol.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/create.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace diomp::offload::remote {
namespace {

/// Exchanges the key-value pairs of all ranks: rank 0 gathers and distributes them.
class control_launcher final : public launch::launcher {
public:
    control_launcher(std::vector<control_connection *> peers, int rank, int size, host_scope scope,
                     double timeout_s, output_handler on_output = {})
        : peers_(std::move(peers)), timeout_s_(timeout_s), on_output_(std::move(on_output)) {
        info_.rank = world_rank(rank);
        info_.size = size;
        info_.host = launch::host_name();
        info_.job_id = launch::make_job_id(info_.host);
        info_.local_ranks = {info_.rank};
        info_.is_split = scope == host_scope::one_host;
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
        bool const is_hub = info_.rank == world_rank(0);
        if (!is_hub) {
            DIOMP_TRY(send_unpublished());
        }
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            DIOMP_TRY(receive_from(i));
        }
        if (is_hub) {
            DIOMP_TRY(send_unpublished());
        }
        std::lock_guard const guard(mutex_);
        unpublished_.merge(values_);
        values_ = std::move(unpublished_);
        unpublished_.clear();
        return {};
    }

    status finalize() override { return {}; }
    void abort(int /*code*/, std::string_view /*message*/) noexcept override {}
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "device service"; }

private:
    using key = std::pair<int, std::string>; ///< owner, name

    status send_unpublished() {
        for (control_connection *peer : peers_) {
            for (auto const &[key, value] : unpublished_) {
                packet_writer packet(frame::entry);
                packet.number(static_cast<std::uint32_t>(key.first));
                packet.text(key.second);
                packet.text(value);
                DIOMP_TRY(peer->send(packet.take()));
            }
            DIOMP_TRY(peer->send(packet_writer(frame::fence).take()));
        }
        return {};
    }

    status receive_from(std::size_t peer) {
        for (;;) {
            auto bytes = peers_[peer]->receive(timeout_s_);
            DIOMP_TRY(bytes);
            packet_reader packet(bytes.value());
            auto const type = packet.type<frame>();
            if (type == frame::output && on_output_) {
                on_output_(peer, bytes.value());
                continue;
            }
            switch (type) {
            case frame::entry: {
                auto const owner = static_cast<int>(packet.number<std::uint32_t>());
                std::string const name(packet.text());
                std::string const value(packet.text());
                if (!packet.ok() || !packet.at_end()) {
                    return error(OMPX_ERR_ARG, "malformed start-up value");
                }
                unpublished_.insert_or_assign({owner, name}, value);
                break;
            }
            case frame::fence:
                return {};
            case frame::ended:
                return error(OMPX_ERR_PEER, std::string(packet.text()));
            default:
                return error(OMPX_ERR_ARG, "unexpected frame during start-up");
            }
        }
    }

    launch::job_info info_;
    std::vector<control_connection *> peers_;
    double timeout_s_;
    output_handler on_output_;
    std::map<key, std::string> unpublished_;
    std::mutex mutex_; ///< protects values_
    std::map<key, std::string> values_;
};

constexpr const char *device_memory_key = "device memory";
constexpr const char *off = "off"; ///< value at rank 0 if the user has disabled it

/// Next to the arena of a job of ranks that the same process may belong to.
std::uint64_t arena_base() {
    return transport::arena::default_base() + transport::arena::max_span();
}

} // namespace

std::unique_ptr<launch::launcher> make_client_launcher(std::vector<control_connection *> sessions,
                                                       host_scope scope, double timeout_s,
                                                       output_handler on_output) {
    int const size = static_cast<int>(sessions.size()) + 1;
    return std::make_unique<control_launcher>(std::move(sessions), 0, size, scope, timeout_s,
                                              std::move(on_output));
}

std::unique_ptr<launch::launcher> make_session_launcher(control_connection &client, int rank,
                                                        int size, host_scope scope,
                                                        double timeout_s) {
    return std::make_unique<control_launcher>(std::vector{&client}, rank, size, scope, timeout_s);
}

result<std::unique_ptr<world>> world::create(std::unique_ptr<launch::launcher> launcher,
                                             const world_options &options, world_handlers handlers,
                                             const transport::failure_handler &on_failure) {
    std::unique_ptr<world> made(new world);
    made->launcher_ = std::move(launcher);
    transport::arena_options arena_options;
    arena_options.base = arena_base();
    arena_options.usable_bytes = options.memory_bytes;
    arena_options.control_bytes = transport::control_bytes_per_rank();
    arena_options.one_slot_per_rank = true; // an address tells the client which session has it
    auto arena = transport::arena::create(*made->launcher_, arena_options);
    DIOMP_TRY(arena);
    made->arena_ = arena.take();
    transport::conduit_options conduit_options;
    conduit_options.dead_peer_timeout_s = options.dead_peer_timeout_s;
    conduit_options.device_memory = options.network_device_memory;
    conduit_options.encrypts = options.encrypts_data;
    auto conduit =
        transport::create(options.conduit, *made->launcher_, *made->arena_, conduit_options);
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
    return made;
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
    if (rank() == world_rank(0)) {
        value = options.network_device_memory == off ? off : "";
    } else if (options.device_memory && conduit_->transfers_any_device_memory() &&
               conduit_->supports_memory_kind(*options.device_memory)) {
        value = std::to_string(static_cast<int>(*options.device_memory));
    }
    return launcher_->put(device_memory_key, value);
}

status world::collect_device_memory() {
    device_memory_.resize(static_cast<std::size_t>(size()));
    auto client_choice = launcher_->get(world_rank(0), device_memory_key);
    DIOMP_TRY(client_choice);
    for (int each = 1; each < size() && client_choice.value() != off; ++each) {
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

std::uint64_t world::memory_of(world_rank owner) const {
    return reinterpret_cast<std::uint64_t>(arena_->slot(owner));
}

void world::freeze() {
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        peers->freeze();
    }
}

} // namespace diomp::offload::remote
