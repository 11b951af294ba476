// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/device.h"

#include "base/log.h"
#include "base/sizes.h"
#include "offload/remote/effects.h"
#include "offload/remote/session_control.h"
#include "transport/arena.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

namespace diomp::offload::remote {
namespace {

/// Describes what this process has at the address whose access crashed a session; "": nothing.
std::string describe_host_address(std::uint64_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin = 0;
        unsigned long long end = 0;
        int name = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %*s %*s %*s %*s %n", &begin, &end, &name) < 2 ||
            address < begin || address >= end) {
            continue;
        }
        std::string const file = name > 0 ? line.substr(static_cast<std::size_t>(name)) : "";
        if (file.starts_with('/')) {
            return fmt::format(" (in {} of the program's process here: tables of virtual "
                               "functions, function pointers and variables of the host are "
                               "not valid on a remote device, see \"Limits\" in docs/remote.md)",
                               file);
        }
        return " (memory of the program's process here that is not mapped on the device: also map "
               "the data that pointers in mapped data refer to)";
    }
    return {};
}

} // namespace

remote_device::remote_device(control_connection connection, device_description description,
                             const std::string &service, std::size_t index)
    : description_(std::move(description)), index_(index),
      label_(fmt::format("remote device {} ({} on {})", index, description_.kind, service)),
      session_(std::make_unique<session_control>(std::move(connection), label_)),
      output_(std::make_unique<session_output>()) {}

remote_device::~remote_device() = default;

std::optional<call_error> remote_device::take_call_error() { return session_->take_call_error(); }

bool remote_device::has_failed() const { return session_->has_failed(); }

void remote_device::set_up(world &ranks, client_observer *observer, bool defers_regions) {
    observer_ = observer;
    slot_.set_up(ranks.memory_of(rank_),
                 std::min<std::uint64_t>(description_.memory_bytes, ranks.arena().usable_bytes()),
                 label_);
    memory_.set_network_reachable(ranks.device_memory(rank_).has_value());
    struct probe {
        transport::completion done;
        std::uint64_t word = 0;
    };
    session_->set_ping([&ranks, rank = rank_, made = std::make_shared<probe>()] {
        if (made->done.is_done()) { // a failure reaches the client by itself
            static_cast<void>(ranks.conduit().rma()->get(rank, ranks.memory_of(rank), &made->word,
                                                         sizeof made->word, made->done));
        }
    });
    deferred_.set_enabled(defers_regions && description_.has_memory_in_slot());
}

result<std::uint64_t> remote_device::call_allocator(frame what,
                                                    std::initializer_list<std::uint64_t> values) {
    packet_writer packet(what);
    for (std::uint64_t const each : values) {
        packet.number(each);
    }
    auto const only = session_->lock_requests();
    auto reply = session_->request(packet.take(), "allocating memory");
    DIOMP_TRY(reply);
    packet_reader reader(reply.value());
    if (reader.type<frame>() != frame::done) {
        return error(OMPX_ERR_SYSTEM, fmt::format("{}: malformed reply", label_));
    }
    return reader.number<std::uint64_t>();
}

result<std::uint64_t> remote_device::allocate(std::size_t nbytes) {
    if (description_.has_memory_in_slot()) {
        return slot_.allocate(nbytes);
    }
    auto address = call_allocator(frame::allocate, {nbytes});
    DIOMP_TRY(address);
    if (address.value() == 0) {
        return error(OMPX_ERR_NOMEM, fmt::format("{}: the device has no space for {}", label_,
                                                 format_size(nbytes)));
    }
    memory_.add_allocation(address.value(), nbytes);
    return address;
}

std::uint64_t remote_device::allocate_segment(std::size_t nbytes, std::uint64_t preferred) {
    auto const address = call_allocator(frame::segment, {nbytes, preferred});
    if (!address || address.value() == 0) {
        log(log_level::warn,
            "{}: calls in its regions fail, since its session cannot create a segment of {} "
            "[remedy: set DIOMP_DEVICE_SEGMENT_SIZE to a size that fits on the device]",
            label_, format_size(nbytes));
        return 0;
    }
    memory_.add_allocation(address.value(), nbytes);
    segment_.store(address.value());
    return address.value();
}

bool remote_device::release(std::uint64_t address) {
    if (!description_.has_memory_in_slot()) {
        memory_.remove_allocation(address);
        std::uint64_t segment = address;
        segment_.compare_exchange_strong(segment, 0);
        auto done = call_allocator(frame::release, {address});
        return done && done.value() != 0;
    }
    return slot_.release(address);
}

status remote_device::check(std::uint64_t address, std::size_t nbytes) const {
    if (session_->has_failed()) {
        return error(OMPX_ERR_PEER, session_->failure());
    }
    if (slot_.has(address)) {
        return slot_.check(address, nbytes);
    }
    // The data of an image exceeds its symbols.
    if (description_.has_memory_in_slot() || memory_.has(address, nbytes)) {
        return {};
    }
    return error(OMPX_ERR_RANGE,
                 fmt::format("{}: {} bytes at {:#x} are not inside memory allocated "
                             "there, nor in a variable of an image",
                             label_, nbytes, address));
}

bool remote_device::handle_frame(std::string_view packet) {
    packet_reader reader(packet);
    switch (reader.type<frame>()) {
    case frame::output: {
        unsigned const stream = reader.number<std::uint8_t>();
        std::string_view const bytes = reader.rest();
        if (stream == 1 || stream == 2) {
            output_->write(stream - 1, bytes);
        }
        return true;
    }
    case frame::wanted:
    case frame::loaded:
    case frame::failed:
    case frame::done:
        session_->add_reply(packet);
        return true;
    case frame::stopped: {
        if (auto const kernels = decode_stopped(reader); observer_ != nullptr && kernels) {
            observer_->ran(index(), kernels.value());
        }
        session_->mark_stopped();
        return true;
    }
    case frame::ended: {
        std::string why(reader.text());
        if (reader.rest_size() >= sizeof(std::uint64_t)) {
            auto const address = reader.number<std::uint64_t>();
            why += fmt::format(", at address {:#x}", address);
            if (!slot_.has(address)) {
                why += describe_host_address(address);
            }
        }
        session_->fail(why);
        return false;
    }
    default:
        session_->fail("the service sent an unexpected frame");
        return false;
    }
}

result<std::vector<std::uint64_t>> remote_device::load(std::string_view image,
                                                       const std::vector<symbol> &symbols) {
    if (observer_ == nullptr) {
        return load_image(image, symbols);
    }
    auto const begin = std::chrono::steady_clock::now();
    auto addresses = load_image(image, symbols);
    if (addresses) {
        observer_->loaded(index(), image.size(), begin, std::chrono::steady_clock::now());
        for (std::size_t i = 0; i < symbols.size(); ++i) {
            observer_->found(index(), addresses.value()[i], symbols[i].name);
        }
    }
    return addresses;
}

result<std::vector<std::uint64_t>> remote_device::load_image(std::string_view image,
                                                             const std::vector<symbol> &symbols) {
    constexpr const char *doing = "loading an image";
    auto const only = session_->lock_requests();
    auto reply = session_->request(encode(load_frame{identify(image), symbols}), doing);
    DIOMP_TRY(reply);
    if (packet_reader(reply.value()).type<frame>() == frame::wanted) {
        packet_writer packet(frame::image);
        packet.bytes(image);
        reply = session_->request(packet.take(), doing);
        DIOMP_TRY(reply);
    }
    packet_reader reader(reply.value());
    auto const type = reader.type<frame>();
    if (type == frame::failed) {
        return error(OMPX_ERR_UNSUPPORTED, fmt::format("{}: {}", label_, reader.text()));
    }
    auto locations = type == frame::loaded
                         ? decode_loaded(reader, symbols.size())
                         : result<std::vector<location>>(error(OMPX_ERR_SYSTEM, "malformed reply"));
    if (!locations) {
        return error(OMPX_ERR_SYSTEM, fmt::format("{}: {}", label_, locations.failure().message()));
    }
    std::vector<std::uint64_t> addresses = memory_.add_symbols(symbols, locations.value());
    if (only_changes_memory(image)) {
        deferred_.add_memory_only(addresses);
    }
    return addresses;
}

} // namespace diomp::offload::remote
