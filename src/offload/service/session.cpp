// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/session.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "launch/launch.h"
#include "offload/remote/world.h"
#include "offload/service/executor.h"
#include "offload/service/region_runtime.h"
#include "transport/arena.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <vector>

namespace diomp::offload::service {
namespace {

class session {
public:
    session(remote::control_connection &client, const session_options &options)
        : client_(client), options_(options) {}

    status serve();

private:
    status join();
    void receive_frames(); ///< body of the thread for control frames
    /// Starts the runtime for calls in regions, with the sessions of other ranks.
    status start_runtime(const remote::join_frame &location);
    void on_peer_lost(world_rank lost, const std::string &why);
    status load(packet_reader &packet);
    void reply_with(std::uint64_t address);
    [[noreturn]] void leave();

    remote::control_connection &client_;
    session_options const &options_;
    /// Never closed: the loader treats a reused file name as the same library.
    std::vector<unique_fd> images_;
    std::unique_ptr<target> target_;
    std::unique_ptr<output> output_;
    std::unique_ptr<kernel_runner> kernels_;
    std::unique_ptr<session_transfers> transfers_;
    std::unique_ptr<batch_runner> runner_;
    std::unique_ptr<executor> executor_;
    enum class runtime_start { none, begun, complete };
    std::atomic<runtime_start> start_{runtime_start::none};
    region_runtime *regions_ = nullptr; ///< lives until the process ends
    std::unique_ptr<remote::world> world_;
};

/// The client's DIOMP_TIMEOUT; 0: none.
double timeout_s_of(const remote::join_frame &location) {
    constexpr double longest_s = 1e6;
    return std::min(std::strtod(location.timeout.c_str(), nullptr), longest_s);
}

/// The client, which names the session that does not answer, gives up first.
double start_limit_s(double own_s, const remote::join_frame &location) {
    return std::max(own_s, 2 * timeout_s_of(location));
}

status session::join() {
    auto bytes = client_.receive(options_.timeout_s);
    DIOMP_TRY(bytes);
    packet_reader packet(bytes.value());
    if (packet.type<remote::frame>() != remote::frame::join) {
        return error(OMPX_ERR_ARG, "the first frame of the client is not 'join'");
    }
    auto decoded = remote::decode_join(packet);
    DIOMP_TRY(decoded);
    remote::join_frame const &location = decoded.value();
    auto redirected =
        output::redirect(client_, std::move(*options_.pipes), options_.activities->fault);
    DIOMP_TRY(redirected);
    output_ = redirected.take();
    if (options_.kind == "cpu") {
        // Loaded in the thread that runs regions, so that it is libomp's initial thread. Otherwise
        // images would load the system's library.
        static_cast<void>(load_libomptarget());
        target_ = make_cpu_target();
    } else {
        auto made_target =
            make_plugin_target(options_.kind, options_.device, options_.network_device_memory);
        DIOMP_TRY(made_target);
        target_ = made_target.take();
    }
    kernels_ =
        std::make_unique<kernel_runner>(*target_, *options_.activities, options_.min_kernel_time_s);
    world_rank const client(static_cast<int>(location.client));
    transfers_ = std::make_unique<session_transfers>(
        *target_, static_cast<int>(location.num_clients), client);
    runner_ = std::make_unique<batch_runner>(*target_, *output_, *kernels_, *transfers_, client);
    executor_ = std::make_unique<executor>(*runner_);
    remote::world_options options;
    options.conduit = location.conduit;
    options.encrypts_data = location.encrypts_data;
    options.node_size = static_cast<int>(location.node_size);
    options.may_share_memory = options_.may_share_memory;
    options.num_clients = static_cast<int>(location.num_clients);
    if (double const limit_s = timeout_s_of(location); limit_s > 0) {
        options.dead_peer_timeout_s = limit_s;
    }
    options.memory_bytes = options_.memory_bytes;
    options.network_device_memory = options_.network_device_memory;
    options.device_memory = target_->abilities().own_memory;
    remote::world_handlers handlers;
    handlers.batch = [this, client](const transport::message &incoming) {
        if (incoming.source == client) { // no other rank sends batches
            executor_->take(incoming);
        }
    };
    handlers.copy = [this](const transport::message &incoming) {
        transfers_->fetches().on_request(incoming);
    };
    handlers.copy_reply = [this](const transport::message &incoming) {
        transfers_->copies().on_reply(incoming);
    };
    remote::world_position const position{.rank = world_rank(static_cast<int>(location.rank)),
                                          .size = static_cast<int>(location.size),
                                          .num_clients = static_cast<int>(location.num_clients),
                                          .scope = location.is_on_one_host
                                                       ? remote::host_scope::one_host
                                                       : remote::host_scope::several_hosts};
    auto made = remote::world::create(
        remote::make_session_launcher(client_, position,
                                      start_limit_s(options_.timeout_s, location)),
        options, std::move(handlers),
        [this](world_rank lost, const std::string &why) { on_peer_lost(lost, why); });
    DIOMP_TRY(made);
    world_ = made.take();
    target_->set_slot({world_->memory_of(world_->rank()), world_->arena().usable_bytes()});
    if (world_->device_memory(world_->rank()).value_or(transport::memory_kind::host) !=
        transport::memory_kind::host) {
        world_->conduit().bind_device_context([this]() -> std::shared_ptr<void> {
            target_->enter();
            return nullptr;
        });
    }
    transfers_->start(*world_);
    return location.has_runtime ? start_runtime(location) : status();
}

/// The client handles the loss of a device in all other respects. If the client is lost, its
/// connection closes.
void session::on_peer_lost(world_rank lost, const std::string &why) {
    transfers_->on_peer_lost(lost, why);
    if (start_.load() == runtime_start::begun) {
        std::_Exit(1); // the start may wait for the lost session for ever
    }
    if (start_.load() == runtime_start::complete) {
        regions_->on_lost(lost);
    }
}

status session::start_runtime(const remote::join_frame &location) {
    remote::world_position const position{.rank = world_rank(static_cast<int>(location.client)),
                                          .size = static_cast<int>(location.num_clients),
                                          .num_clients = 0,
                                          .scope = location.is_on_one_host
                                                       ? remote::host_scope::one_host
                                                       : remote::host_scope::several_hosts};
    regions_ = new region_runtime(remote::make_session_launcher(
        client_, position, start_limit_s(options_.timeout_s, location)));
    start_.store(runtime_start::begun);
    std::optional<region_runtime::gpu> gpu;
    if (options_.kind != "cpu") {
        gpu = {options_.kind, options_.device};
    }
    DIOMP_TRY(regions_->start(*world_, location, std::move(gpu)));
    target_->use_runtime(regions_->regions());
    start_.store(runtime_start::complete);
    runner_->use_runtime(*regions_);
    reply_with(0);
    return {};
}

status session::load(packet_reader &packet) {
    auto wanted = remote::decode_load(packet);
    DIOMP_TRY(wanted);
    remote::load_frame const &load = wanted.value();
    auto known = options_.images->find(load.image);
    if (!known) {
        DIOMP_TRY(client_.send(packet_writer(remote::frame::wanted).take()));
        auto bytes = client_.receive();
        DIOMP_TRY(bytes);
        packet_reader reader(bytes.value());
        if (reader.type<remote::frame>() != remote::frame::image) {
            return error(OMPX_ERR_ARG, "an image was expected");
        }
        auto kept = options_.images->add(load.image, reader.rest());
        DIOMP_TRY(kept);
        known = kept.take();
    }
    images_.push_back(std::move(*known));
    std::string missing;
    options_.activities->begin(activity_table::num_entries - 1, "constructors of an image");
    result<std::vector<remote::location>> locations(error(OMPX_ERR_SYSTEM, "not loaded"));
    // Runs in a temporary thread: libomp counts each thread that has called it as a thread of
    // regions until it ends (see executor.cpp).
    start_service_thread("diomp-load", [&] {
        missing = load_libomptarget_of(path_of(images_.back()));
        locations = target_->load(path_of(images_.back()), load.image, load.symbols);
    }).join();
    options_.activities->end(activity_table::num_entries - 1);
    if (!locations && !missing.empty() &&
        locations.failure().message().find(missing) != std::string::npos) {
        return error(locations.failure().code(), locations.failure().message(),
                     fmt::format("install DiOMP's {} beside the service", missing));
    }
    DIOMP_TRY(locations);
    return client_.send(encode(locations.value()));
}

void session::receive_frames() {
    target_allocator *const allocator = target_->abilities().allocator;
    for (;;) {
        auto bytes = client_.receive();
        if (!bytes) {
            std::_Exit(0); // the client has disconnected
        }
        packet_reader packet(bytes.value());
        switch (packet.type<remote::frame>()) {
        case remote::frame::load:
            if (status const loaded = load(packet); !loaded) {
                packet_writer reply(remote::frame::failed);
                reply.text(loaded.failure().message());
                static_cast<void>(client_.send(reply.take()));
            }
            break;
        case remote::frame::allocate: {
            auto const nbytes = packet.number<std::uint64_t>();
            auto address =
                allocator == nullptr ? result<std::uint64_t>(0) : allocator->allocate(nbytes);
            reply_with(address ? address.value() : 0);
            break;
        }
        case remote::frame::segment: {
            auto const nbytes = packet.number<std::uint64_t>();
            auto const preferred = packet.number<std::uint64_t>();
            bool const has_runtime = regions_ != nullptr && allocator != nullptr;
            auto const address = has_runtime ? regions_->segment(nbytes, preferred) : 0;
            if (address != 0) {
                allocator->add(address, nbytes);
            }
            reply_with(address);
            break;
        }
        case remote::frame::group:
            reply_with(regions_ != nullptr && regions_->note_group(packet.rest()) ? 1 : 0);
            break;
        case remote::frame::release: {
            std::uint64_t const address = packet.number<std::uint64_t>();
            reply_with(allocator != nullptr && allocator->release(address) ? address : 0);
            break;
        }
        case remote::frame::lost: {
            world_rank const lost(static_cast<int>(packet.number<std::uint32_t>()));
            transfers_->on_peer_lost(lost, std::string(packet.text()));
            break;
        }
        case remote::frame::stop:
            leave();
        default:
            std::_Exit(1); // not a valid client
        }
    }
}

void session::reply_with(std::uint64_t address) {
    packet_writer reply(remote::frame::done);
    reply.number(address);
    static_cast<void>(client_.send(reply.take()));
}

void session::leave() {
    target_->unload();
    log(log_level::info,
        "the device's own memory: {} bytes by zero copy over the network, {} staged in the "
        "session's",
        transfers_->moved().zero_copy.load(), transfers_->moved().staged.load());
    output_->flush();
    static_cast<void>(client_.send(encode(kernels_->times())));
    // The client closes the connection when its network no longer uses this process as a peer. The
    // process must not end before.
    while (client_.receive()) {
    }
    std::_Exit(0);
}

status session::serve() {
    if (status joined = join(); !joined) {
        packet_writer packet(remote::frame::ended);
        error const &why = joined.failure();
        packet.text(why.remedy().empty()
                        ? why.message()
                        : fmt::format("{} [remedy: {}]", why.message(), why.remedy()));
        static_cast<void>(client_.send(packet.take()));
        return joined;
    }
    // A separate thread, since the end of the session must not wait for a kernel.
    std::thread listener = start_service_thread("diomp-session", [this] { receive_frames(); });
    executor_->run(*world_);
    listener.join();
    return {};
}

} // namespace

status serve(remote::control_connection &client, const session_options &options) {
    // Never destroyed: its threads and handlers use each other until the process ends.
    static auto *const only = new session(client, options);
    return only->serve();
}

} // namespace diomp::offload::service
