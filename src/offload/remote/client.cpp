// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/client.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "conduit/registration.h"
#include "launch/same_node.h"
#include "offload/remote/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::seconds patience_at_end{5};

/// The others need a launcher of their own, and a world of sessions has ours.
std::string conduit_for(const client::options &chosen, bool have_all_adapters) {
    if (chosen.network == "tcp" || chosen.network == "ucx") {
        return chosen.network;
    }
    // Over TCP ours is quicker, and its connections prove who they are.
    bool const is_better = have_all_adapters && conduit::has_rdma_adapter();
    return is_better && !chosen.encrypts_data ? "ucx" : "tcp";
}

/// One line for all devices.
void report_plain_data(const std::vector<std::unique_ptr<remote_device>> &devices,
                       const std::string &own_node) {
    auto const away = std::ranges::find_if(
        devices, [&](auto const &each) { return each->description().node != own_node; });
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
        auto connected = control_link::connect(service.host, service.port, chosen.token, first + i,
                                               chosen.connect_timeout_s);
        DIOMP_TRY(connected);
        control_link &link = connected.value();
        auto answer = link.receive(chosen.connect_timeout_s);
        if (!answer) {
            return error(answer.failure().code(),
                         fmt::format("the device service at {} offers no device: {}", name,
                                     answer.failure().message()),
                         "see its log");
        }
        packet_reader reader(answer.value());
        auto const type = reader.type<frame>();
        if (type == frame::refused) {
            return error(OMPX_ERR_PEER,
                         fmt::format("the device service at {} refuses: {}", name, reader.text()));
        }
        auto offered = type == frame::welcome
                           ? decode_offer(reader)
                           : result<offer>(error(OMPX_ERR_ARG, "unexpected frame"));
        if (!offered) {
            return error(OMPX_ERR_ARG, fmt::format("what listens at {} is no device service: {}",
                                                   name, offered.failure().message()));
        }
        if (count == 0) {
            count = offered.value().num_devices - first;
        }
        devices_.push_back(
            std::make_unique<remote_device>(std::move(link), offered.take(), name,
                                            world_rank(static_cast<int>(devices_.size()) + 1)));
    }
    return {};
}

status client::build_world(const options &chosen) {
    std::vector<control_link *> links;
    world_options options;
    options.dead_peer_timeout_s = chosen.dead_peer_timeout_s;
    options.conduit = conduit_for(chosen, std::ranges::all_of(devices_, [](auto const &each) {
                                      return each->description().has_rdma_adapter;
                                  }));
    options.encrypts_data = chosen.encrypts_data;
    options.network_device_memory = chosen.network_device_memory;
    std::string const own_node = launch::node_identity();
    if (!chosen.encrypts_data) {
        report_plain_data(devices_, own_node);
    }
    bool const is_on_one_host = std::ranges::all_of(
        devices_, [&](auto const &each) { return each->description().node == own_node; });
    for (auto const &each : devices_) {
        join_frame const join{.rank = static_cast<std::uint32_t>(each->rank().value()),
                              .size = static_cast<std::uint32_t>(devices_.size() + 1),
                              .conduit = options.conduit,
                              .is_on_one_host = is_on_one_host,
                              .encrypts_data = chosen.encrypts_data};
        DIOMP_TRY(each->link().send(encode(join)));
        links.push_back(&each->link());
        options.memory_bytes =
            std::max<std::size_t>(options.memory_bytes, each->description().memory_bytes);
    }
    world_handlers handlers;
    handlers.reply = [this](const conduit::message &incoming) { on_reply(incoming); };
    auto const on_output = [this](std::size_t session, std::string_view packet) {
        devices_[session]->take_frame(packet);
    };
    auto made = world::create(
        make_hub(std::move(links), is_on_one_host ? spread::one_host : spread::several_hosts,
                 chosen.timeout_s, on_output),
        options, std::move(handlers), [this](world_rank peer, std::string why) {
            if (remote_device *const lost = device_of(peer)) {
                lost->suspect(std::move(why));
                wake_listener();
            }
        });
    DIOMP_TRY(made);
    world_ = made.take();
    // A forked child may have sessions of its own, in the same place.
    conduit::window const &memory = world_->window();
    ::madvise(memory.slot(world_rank(0)),
              static_cast<std::size_t>(memory.num_slots()) * memory.slot_bytes(), MADV_DONTFORK);
    for (auto const &each : devices_) {
        each->slot().set_up(world_->memory_of(each->rank()), each->description().memory_bytes,
                            each->label());
        each->is_reached_ = world_->device_memory(each->rank()).has_value();
        each->watch_ = watch_;
        each->posted().allow(chosen.posts_regions && each->description().has_memory_in_slot());
    }
    return {};
}

result<std::unique_ptr<client>> client::connect(const options &chosen) {
    std::unique_ptr<client> made(new client);
    made->watch_ = chosen.watch;
    if (chosen.split_threshold_bytes > 0) {
        made->split_threshold_bytes_ = chosen.split_threshold_bytes;
    }
    for (service_address const &service : chosen.services) {
        DIOMP_TRY(made->connect_to(service, chosen));
    }
    if (made->devices_.empty()) {
        return made;
    }
    made->wake_ = unique_fd(::eventfd(0, EFD_CLOEXEC));
    if (!made->wake_.valid()) {
        return system_error("eventfd", errno);
    }
    DIOMP_TRY(made->build_world(chosen));
    // The largest packet of a queue has to fit into a message.
    std::size_t const most = made->world_->conduit().max_message_bytes(world_rank(1)) -
                             batch_header_bytes - put_header_bytes - reply_header_bytes;
    made->split_threshold_bytes_ = std::min(made->split_threshold_bytes_, most);
    made->thread_ = start_service_thread("diomp-remote", [self = made.get()] { self->listen(); });
    return made;
}

void client::close_in_child() {
    for (auto const &each : devices_) {
        ::close(each->link().fd());
    }
}

void client::wake_listener() {
    std::uint64_t const one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

bool client::release(remote_device &on, std::uint64_t address) {
    if (!on.release(address)) {
        return false;
    }
    if (on.description().has_memory_in_slot() && on.slot().has_surplus()) {
        queue &last = take_queue(on);
        if (status const returned = last.return_pages(); !returned) {
            log(log_level::debug, "{}", returned.failure().message());
        }
        give_back(last);
    }
    return true;
}

status client::settle(remote_device &on) {
    if (on.posted().is_empty()) {
        return {};
    }
    queue &last = take_queue(on);
    status done = last.follow_all();
    if (status waited = last.synchronize(); done && !waited) {
        done = std::move(waited);
    }
    give_back(last);
    return done;
}

status client::settle() {
    for (auto const &each : devices_) {
        DIOMP_TRY(settle(*each));
    }
    return {};
}

client::~client() {
    closing_.store(true, std::memory_order_release);
    for (auto const &each : devices_) {
        if (!each->has_failed() && thread_.joinable()) {
            static_cast<void>(each->link().send(packet_writer(frame::stop).take()));
        }
    }
    for (auto const &each : devices_) {
        std::unique_lock lock(each->mutex_);
        if (thread_.joinable()) {
            each->answered_.wait_for(lock, patience_at_end, [&] {
                return each->has_failed() || each->stopped_.load(std::memory_order_acquire);
            });
        }
    }
    if (thread_.joinable()) {
        stopping_.store(true, std::memory_order_release);
        wake_listener();
        thread_.join();
    }
    // Sessions end with their connections, when this side no longer talks to them.
    world_.reset();
    for (auto const &each : devices_) {
        each->link().shut();
    }
}

remote_device *client::device_of(world_rank rank) {
    std::size_t const index = rank.index() - 1;
    return index < devices_.size() ? devices_[index].get() : nullptr;
}

queue &client::take_queue(remote_device &on) {
    std::lock_guard const guard(queues_mutex_);
    auto &idle = idle_[&on];
    if (idle.empty()) {
        queues_.push_back(std::make_unique<queue>(*this, on, queues_.size()));
        return *queues_.back();
    }
    queue &found = *idle.back();
    idle.pop_back();
    return found;
}

void client::give_back(queue &idle) {
    std::lock_guard const guard(queues_mutex_);
    idle_[&idle.device()].push_back(&idle);
}

void client::on_reply(const conduit::message &incoming) {
    auto answer = decode_reply(
        {reinterpret_cast<const char *>(incoming.payload.data()), incoming.payload.size()});
    if (!answer) {
        return;
    }
    queue *asker = nullptr;
    {
        std::lock_guard const guard(queues_mutex_);
        if (answer.value().queue < queues_.size()) {
            asker = queues_[answer.value().queue].get();
        }
    }
    if (asker != nullptr && asker->device().rank() == incoming.source) {
        asker->take_reply(answer.value());
    }
}

/// Sessions that wait for the lost one would not always learn it from the network.
void client::tell_of_loss(const remote_device &lost) {
    for (auto const &each : devices_) {
        if (!each->has_failed()) {
            packet_writer packet(frame::lost);
            packet.number(static_cast<std::uint32_t>(lost.rank().value()));
            packet.text(lost.failure());
            static_cast<void>(each->link().send(packet.take()));
        }
    }
}

void client::listen() {
    std::vector<remote_device *> open;
    open.reserve(devices_.size());
    for (auto const &each : devices_) {
        open.push_back(each.get());
    }
    while (!open.empty()) {
        std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}};
        for (remote_device *each : open) {
            entries.push_back({each->link().fd(), POLLIN, 0});
        }
        bool is_suspicious = false;
        for (remote_device *each : open) {
            is_suspicious = each->look_at_suspicion() || is_suspicious;
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
                auto packet = open[i]->link().receive(remote::control_link::silence_s);
                if (packet) {
                    is_open = open[i]->take_frame(packet.value());
                } else {
                    if (!closing_.load(std::memory_order_acquire)) {
                        open[i]->fail("the service is gone: " + packet.failure().message());
                    } else {
                        open[i]->fail("closed");
                    }
                    is_open = false;
                }
                if (!is_open && !closing_.load(std::memory_order_acquire)) {
                    tell_of_loss(*open[i]);
                }
                world_->conduit().wake();
            }
            if (is_open) {
                still_open.push_back(open[i]);
            }
        }
        open = std::move(still_open);
    }
}

} // namespace diomp::offload::remote
