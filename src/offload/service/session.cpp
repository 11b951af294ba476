// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/session.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "offload/remote/world.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

namespace diomp::offload::service {
namespace {

class session {
public:
    session(remote::control_link &client, const session_options &options)
        : client_(client), options_(options) {}

    status serve();

private:
    status join();
    void listen(); ///< body of the thread for control frames
    status load(packet_reader &packet);
    void answer_with(std::uint64_t address);
    [[noreturn]] void leave();

    remote::control_link &client_;
    session_options const &options_;
    /// Never closed: the loader takes a name that comes again for the same library.
    std::vector<unique_fd> images_;
    std::unique_ptr<target> target_;
    std::unique_ptr<output> output_;
    std::unique_ptr<executor> executor_;
    std::unique_ptr<remote::world> world_;
};

status session::join() {
    auto bytes = client_.receive(options_.timeout_s);
    DIOMP_TRY(bytes);
    packet_reader packet(bytes.value());
    if (packet.type<remote::frame>() != remote::frame::join) {
        return error(OMPX_ERR_ARG, "the client does not say which rank of what world this is");
    }
    auto decoded = remote::decode_join(packet);
    DIOMP_TRY(decoded);
    remote::join_frame const &place = decoded.value();
    auto redirected = output::redirect(client_, std::move(*options_.pipes), options_.board->fault);
    DIOMP_TRY(redirected);
    output_ = redirected.take();
    if (options_.kind == "cpu") {
        // In the thread that runs regions, which is then the first one that libomp knows. An image
        // would find the system's library otherwise.
        static_cast<void>(load_libomptarget());
        target_ = make_cpu_target();
    } else {
        auto made_target =
            make_plugin_target(options_.kind, options_.device, options_.network_device_memory);
        DIOMP_TRY(made_target);
        target_ = made_target.take();
    }
    executor_ = std::make_unique<executor>(*target_, *output_, *options_.board,
                                           options_.least_kernel_time_s);
    remote::world_options options;
    options.conduit = place.conduit;
    options.encrypts_data = place.encrypts_data;
    options.memory_bytes = options_.memory_bytes;
    options.network_device_memory = options_.network_device_memory;
    options.device_memory = target_->own_memory();
    remote::world_handlers handlers;
    handlers.batch = [this](const conduit::message &incoming) { executor_->take(incoming); };
    handlers.copy = [this](const conduit::message &incoming) {
        executor_->peers().take_request(incoming);
    };
    handlers.copied = [this](const conduit::message &incoming) {
        executor_->peers().take_answer(incoming);
    };
    auto made = remote::world::create(
        remote::make_member(client_, static_cast<int>(place.rank), static_cast<int>(place.size),
                            place.is_on_one_host ? remote::spread::one_host
                                                 : remote::spread::several_hosts,
                            options_.timeout_s),
        options, std::move(handlers), [this](world_rank lost, const std::string &why) {
            // Otherwise the client decides what a lost device means; a lost
            // client ends its connection.
            executor_->peers().lose(lost, why);
        });
    DIOMP_TRY(made);
    world_ = made.take();
    target_->set_slot({world_->memory_of(world_->rank()), world_->window().usable_bytes()});
    if (world_->device_memory(world_->rank()).value_or(conduit::memory_kind::host) !=
        conduit::memory_kind::host) {
        world_->conduit().work_in([this]() -> std::shared_ptr<void> {
            target_->enter();
            return nullptr;
        });
    }
    executor_->peers().start(*world_);
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
    options_.board->begin(activity_board::num_lines - 1, "constructors of an image");
    result<std::vector<remote::place>> places(error(OMPX_ERR_SYSTEM, "not loaded"));
    // In a thread that ends afterwards: libomp would count one that has met it as a thread of
    // regions for as long as it lives (see executor.cpp).
    start_service_thread("diomp-load", [&] {
        places = target_->load(path_of(images_.back()), load.image, load.symbols);
    }).join();
    options_.board->end(activity_board::num_lines - 1);
    DIOMP_TRY(places);
    return client_.send(encode(places.value()));
}

void session::listen() {
    for (;;) {
        auto bytes = client_.receive();
        if (!bytes) {
            std::_Exit(0); // the client is gone, and with it all reason to go on
        }
        packet_reader packet(bytes.value());
        switch (packet.type<remote::frame>()) {
        case remote::frame::load:
            if (status const loaded = load(packet); !loaded) {
                packet_writer answer(remote::frame::failed);
                answer.text(loaded.failure().message());
                static_cast<void>(client_.send(answer.take()));
            }
            break;
        case remote::frame::allocate: {
            auto address = target_->allocate(packet.number<std::uint64_t>());
            answer_with(address ? address.value() : 0);
            break;
        }
        case remote::frame::release: {
            std::uint64_t const address = packet.number<std::uint64_t>();
            answer_with(target_->release(address) ? address : 0);
            break;
        }
        case remote::frame::lost: {
            world_rank const lost(static_cast<int>(packet.number<std::uint32_t>()));
            executor_->peers().lose(lost, std::string(packet.text()));
            break;
        }
        case remote::frame::stop:
            leave();
        default:
            std::_Exit(1); // no client of ours
        }
    }
}

void session::answer_with(std::uint64_t address) {
    packet_writer answer(remote::frame::done);
    answer.number(address);
    static_cast<void>(client_.send(answer.take()));
}

void session::leave() {
    target_->unload();
    log(log_level::info,
        "the device's own memory: {} bytes straight to and from the network, {} by way of the "
        "session's",
        executor_->moved().straight.load(), executor_->moved().by_way.load());
    output_->flush();
    static_cast<void>(client_.send(encode(executor_->kernel_times())));
    // The client closes when it no longer talks to this process: not before may its peer vanish.
    while (client_.receive()) {
    }
    std::_Exit(0);
}

status session::serve() {
    if (status joined = join(); !joined) {
        packet_writer packet(remote::frame::ended);
        packet.text(joined.failure().message());
        static_cast<void>(client_.send(packet.take()));
        return joined;
    }
    // Not a thread of the pool: what ends the session must not wait for a kernel.
    std::thread listener = start_service_thread("diomp-session", [this] { listen(); });
    executor_->run(*world_);
    listener.join();
    return {};
}

} // namespace

status serve(remote::control_link &client, const session_options &options) {
    return session(client, options).serve();
}

} // namespace diomp::offload::service
