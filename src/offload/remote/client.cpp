// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/client.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "base/unique_fd.h"
#include "launch/launch.h"
#include "offload/remote/client_queues.h"
#include "offload/remote/control.h"
#include "offload/remote/session_control.h"
#include "offload/remote/world_terms.h"
#include "transport/conduit.h"
#include "transport/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::seconds shutdown_timeout{5};
/// The segment of a device has a multiple of this size.
constexpr std::size_t segment_unit = std::size_t{1} << 16;

/// Chooses tcp or ucx: the other conduits need their own launchers, which a world of sessions does
/// not have.
std::string choose_conduit(const world_terms &terms) {
    if (terms.network == "tcp" || terms.network == "ucx") {
        return terms.network;
    }
    // On TCP networks the tcp conduit is faster than UCX, and it authenticates its connections.
    return terms.have_adapters && !terms.encrypts_data ? "ucx" : "tcp";
}

/// An eighth of the smallest GPU's memory unless the user chooses: sessions may share a GPU, and
/// memory at other addresses is allocated where this process uses the first ones.
std::size_t choose_gpu_segment_bytes(std::size_t chosen, const world_terms &terms) {
    constexpr std::size_t min_bytes = std::size_t{64} << 20;
    constexpr std::size_t unit_bytes = std::size_t{2} << 20; // drivers round up to it
    bool const is_known = terms.least_gpu_bytes != std::numeric_limits<std::size_t>::max();
    std::size_t const wanted =
        chosen != 0 ? chosen : std::max(min_bytes, is_known ? terms.least_gpu_bytes / 8 : 0);
    return (wanted + unit_bytes - 1) / unit_bytes * unit_bytes;
}

/// Logs one warning for all devices whose data leaves this host.
void warn_unencrypted(const std::vector<std::unique_ptr<remote_device>> &devices,
                      const transport::host_identity &own) {
    auto const away = std::ranges::find_if(devices, [&](auto const &each) {
        return !each->description().identity.shares_interfaces_with(own);
    });
    if (away != devices.end()) {
        log(log_level::warn,
            "data of remote devices is not encrypted on its way to other hosts ({}{}); "
            "DIOMP_ENCRYPT=all encrypts it",
            (*away)->description().host, devices.size() > 1 ? ", ..." : "");
    }
}

} // namespace

status client::connect_to(const service_address &service, const options &chosen) {
    std::string const name = fmt::format("{}:{}", service.host, service.port);
    auto const first = static_cast<std::uint32_t>(service.first);
    auto count = static_cast<std::uint32_t>(service.count);
    for (std::uint32_t i = 0; i == 0 || i < count; ++i) {
        auto connected = control_connection::connect(service.host, service.port, chosen.token,
                                                     first + i, chosen.connect_timeout_s);
        DIOMP_TRY(connected);
        control_connection &connection = connected.value();
        auto reply = connection.receive(chosen.connect_timeout_s);
        if (!reply) {
            return error(reply.failure().code(),
                         fmt::format("the device service at {} offers no device: {}", name,
                                     reply.failure().message()),
                         "see the log of the service");
        }
        packet_reader reader(reply.value());
        auto const type = reader.type<frame>();
        if (type == frame::refused) {
            return error(OMPX_ERR_PEER,
                         fmt::format("the device service at {} refuses: {}", name, reader.text()));
        }
        auto description =
            type == frame::accepted
                ? decode_device_description(reader)
                : result<device_description>(error(OMPX_ERR_ARG, "unexpected frame"));
        if (!description) {
            return error(OMPX_ERR_ARG,
                         fmt::format("the program that listens at {} is not a device service: {}",
                                     name, description.failure().message()));
        }
        if (count == 0) {
            count = description.value().num_devices - first;
        }
        devices_.push_back(std::make_unique<remote_device>(
            std::move(connection), description.take(), name, devices_.size()));
    }
    return {};
}

/// Sets the position and the ranks of the devices.
result<world_terms> client::agree_on_terms(const options &chosen, const client_exchange &exchange) {
    world_terms own;
    own.network = chosen.network;
    own.node_size = chosen.job.node_size;
    transport::host_identity const here = transport::identify_this_host();
    own.node = here.node;
    own.encrypts_data = chosen.encrypts_data;
    own.have_adapters = transport::has_rdma_adapter();
    for (auto const &each : devices_) {
        own.add(each->description());
    }
    agreed_terms agreed{own, {own.num_devices}, {own.is_gpu}, 0};
    world_position &position = facts_.position;
    if (exchange) {
        position.num_clients = chosen.job.launcher->info().size;
        position.rank = chosen.job.launcher->info().rank;
        auto combined = agree(own, position.rank.value(), exchange);
        DIOMP_TRY(combined);
        agreed = combined.take();
    }
    position.size = position.num_clients + agreed.all.num_devices;
    position.scope = agreed.all.is_on_one_host ? host_scope::one_host : host_scope::several_hosts;
    facts_.num_speaking = agreed.num_speaking;
    facts_.num_devices = std::move(agreed.num_devices);
    facts_.is_gpu = std::move(agreed.is_gpu);
    auto const own_ranks = sessions_of(position.rank, facts_.num_devices);
    for (auto const &each : devices_) {
        each->set_rank(own_ranks[each->index()]);
    }
    if (!agreed.all.encrypts_data) {
        warn_unencrypted(devices_, here);
    }
    return agreed.all;
}

status client::build_world(const options &chosen) {
    client_exchange exchange;
    facts_.is_of_job = chosen.job.launcher != nullptr;
    if (chosen.job.launcher != nullptr) {
        exchange = make_client_exchange(*chosen.job.launcher);
    }
    auto agreed = agree_on_terms(chosen, exchange);
    DIOMP_TRY(agreed);
    world_terms const &terms = agreed.value();
    if (terms.num_devices == 0) {
        return {};
    }
    world_options options;
    options.conduit = choose_conduit(terms);
    options.num_clients = facts_.position.num_clients;
    options.num_devices = facts_.num_devices;
    options.gpus = {facts_.is_gpu, terms.least_gpu_bytes};
    options.memory_bytes = terms.memory_bytes;
    options.dead_peer_timeout_s = chosen.dead_peer_timeout_s;
    options.encrypts_data = terms.encrypts_data;
    options.node_size = terms.node_size;
    options.network_device_memory = chosen.network_device_memory;
    std::vector<control_peer> sessions;
    facts_.segments.of_gpu = choose_gpu_segment_bytes(chosen.job.gpu_segment_bytes, terms);
    auto const has_runtime_of = [&](const remote_device &device) {
        return has_runtime(static_cast<int>(device.index()));
    };
    for (auto const &each : devices_) {
        join_frame const join{.rank = static_cast<std::uint32_t>(each->rank().value()),
                              .size = static_cast<std::uint32_t>(facts_.position.size),
                              .num_clients =
                                  static_cast<std::uint32_t>(facts_.position.num_clients),
                              .client = static_cast<std::uint32_t>(facts_.position.rank.value()),
                              .conduit = options.conduit,
                              .is_on_one_host = facts_.position.scope == host_scope::one_host,
                              .encrypts_data = terms.encrypts_data,
                              .node_size = static_cast<std::uint32_t>(terms.node_size),
                              .has_runtime = has_runtime_of(*each),
                              .timeout = chosen.job.timeout,
                              .segment_bytes = facts_.segments.of_gpu};
        // If it fails, the first fence reports why.
        static_cast<void>(each->session().connection().send(encode(join)));
        sessions.push_back({&each->session().connection(), each->label()});
    }
    world_handlers handlers;
    handlers.reply = [this](const transport::message &incoming) { queues_->on_reply(incoming); };
    auto const on_output = [this](std::size_t session, std::string_view packet) {
        devices_[session]->handle_frame(packet);
    };
    auto launcher = make_client_launcher(std::move(sessions), facts_.position, chosen.timeout_s,
                                         on_output, exchange);
    DIOMP_TRY(slots_->publish(*launcher, options.conduit == "tcp" && terms.node_size == 0));
    auto made =
        world::create(std::move(launcher), options, std::move(handlers),
                      [this](world_rank peer, std::string why) {
                          slots_->note_lost(peer);
                          if (remote_device *const lost = device_of(peer)) {
                              lost->session().suspect(loss_without_rank(peer, std::move(why)));
                              wake_thread();
                          }
                      });
    DIOMP_TRY(made);
    world_ = made.take();
    slots_->map(*world_);
    for (auto const &each : devices_) {
        if (has_runtime_of(*each)) {
            auto const on_session_output = [&](std::size_t, std::string_view packet) {
                each->handle_frame(packet);
            };
            DIOMP_TRY(relay_runtime_start({&each->session().connection(), each->label()},
                                          facts_.position, chosen.timeout_s, on_session_output,
                                          exchange));
        }
    }
    // A forked child may map a separate world at the same addresses.
    transport::arena const &memory = world_->arena();
    ::madvise(memory.slot(world_rank(0)), memory.span_bytes(), MADV_DONTFORK);
    // The rest is for stage buffers and for allocations that do not fit.
    facts_.segments.of_processor =
        std::min(terms.least_bytes, memory.usable_bytes()) / device_memory::num_stage_buffers *
        (device_memory::num_stage_buffers - 1) / segment_unit * segment_unit;
    for (auto const &each : devices_) {
        each->set_up(*world_, observer_, chosen.defers_regions);
    }
    return {};
}

result<std::unique_ptr<client>> client::connect(const options &chosen) {
    std::unique_ptr<client> made(new client);
    made->observer_ = chosen.observer;
    made->queues_ = std::make_unique<client_queues>(*made);
    made->slots_ = std::make_unique<shared_slots>();
    if (chosen.split_threshold_bytes > 0) {
        made->facts_.split_threshold_bytes = chosen.split_threshold_bytes;
    }
    status connected;
    for (service_address const &service : chosen.services) {
        connected = made->connect_to(service, chosen);
        if (!connected) {
            break;
        }
    }
    if (!connected) {
        if (chosen.job.launcher == nullptr) {
            return connected.take_failure();
        }
        made->facts_.failure = connected.take_failure();
        made->devices_.clear();
    }
    if (made->devices_.empty() && chosen.job.launcher == nullptr) {
        return made;
    }
    made->wake_ = unique_fd(::eventfd(0, EFD_CLOEXEC));
    if (!made->wake_.valid()) {
        return system_error("eventfd", errno);
    }
    DIOMP_TRY(made->build_world(chosen));
    if (made->devices_.empty()) {
        return made;
    }
    // The largest inline transfer of a queue must fit into a message.
    std::size_t const max_bytes =
        made->world_->conduit().max_message_bytes(made->devices_.front()->rank()) -
        batch_header_bytes - put_header_bytes - reply_header_bytes;
    made->facts_.split_threshold_bytes = std::min(made->facts_.split_threshold_bytes, max_bytes);
    made->thread_ =
        start_service_thread("diomp-remote", [self = made.get()] { self->receive_frames(); });
    return made;
}

void client::close_in_child() {
    for (auto const &each : devices_) {
        ::close(each->session().connection().fd());
    }
}

void client::wake_thread() {
    std::uint64_t const one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

client::~client() {
    closing_.store(true, std::memory_order_release);
    for (auto const &each : devices_) {
        if (!each->session().has_failed() && thread_.joinable()) {
            static_cast<void>(each->session().connection().send(packet_writer(frame::stop).take()));
        }
    }
    if (thread_.joinable()) {
        for (auto const &each : devices_) {
            each->session().wait_until_stopped(shutdown_timeout);
        }
        stopping_.store(true, std::memory_order_release);
        wake_thread();
        thread_.join();
    }
    // A session ends when its connection closes. The world must be destroyed before.
    world_.reset();
    for (auto const &each : devices_) {
        each->session().connection().shut_down();
    }
}

remote_device *client::device_of(world_rank rank) {
    auto const found = std::ranges::find(devices_, rank, &remote_device::rank);
    return found == devices_.end() ? nullptr : found->get();
}

/// Sessions that wait for the lost device are not always notified by the network.
void client::notify_device_loss(const remote_device &lost) {
    slots_->note_lost(lost.rank());
    for (auto const &each : devices_) {
        if (!each->session().has_failed()) {
            packet_writer packet(frame::lost);
            packet.number(static_cast<std::uint32_t>(lost.rank().value()));
            packet.text(lost.session().failure());
            static_cast<void>(each->session().connection().send(packet.take()));
        }
    }
}

void client::receive_frames() {
    std::vector<remote_device *> open;
    open.reserve(devices_.size());
    for (auto const &each : devices_) {
        open.push_back(each.get());
    }
    while (!open.empty()) {
        std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}};
        for (remote_device *each : open) {
            entries.push_back({each->session().connection().fd(), POLLIN, 0});
        }
        bool is_suspicious = false;
        for (remote_device *each : open) {
            is_suspicious = each->session().check_suspicion() || is_suspicious;
        }
        if (::poll(entries.data(), entries.size(), is_suspicious ? 50 : -1) < 0 && errno != EINTR) {
            return;
        }
        if (entries[0].revents != 0) {
            std::uint64_t count = 0;
            static_cast<void>(!::read(wake_.get(), &count, sizeof count));
            if (stopping_.load(std::memory_order_acquire)) {
                return;
            }
        }
        std::vector<remote_device *> still_open;
        for (std::size_t i = 0; i < open.size(); ++i) {
            bool is_open = true;
            if (entries[i + 1].revents != 0) {
                session_control &session = open[i]->session();
                auto packet = session.connection().receive(control_connection::silence_timeout_s);
                if (packet) {
                    is_open = open[i]->handle_frame(packet.value());
                } else {
                    if (!closing_.load(std::memory_order_acquire)) {
                        session.fail("the service is gone: " + packet.failure().message());
                    } else {
                        session.fail("closed");
                    }
                    is_open = false;
                }
                if (!is_open && !closing_.load(std::memory_order_acquire)) {
                    notify_device_loss(*open[i]);
                }
                world_->conduit().waits().wake();
            }
            if (is_open) {
                still_open.push_back(open[i]);
            }
        }
        open = std::move(still_open);
    }
}

} // namespace diomp::offload::remote
