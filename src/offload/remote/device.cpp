// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/sizes.h"
#include "offload/remote/client.h"
#include "offload/remote/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

constexpr std::chrono::seconds suspicion_timeout{1};

/// Writes all bytes to a stream of this process, after the output that stdio has buffered.
void write_fully(unsigned stream, std::string_view bytes) {
    std::fflush(stream == 1 ? stdout : stderr);
    int const fd = stream == 1 ? STDOUT_FILENO : STDERR_FILENO;
    while (!bytes.empty()) {
        ssize_t const written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return; // the reader has closed it
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

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
                             std::string service, world_rank rank)
    : connection_(std::move(connection)), description_(std::move(description)), rank_(rank),
      label_(fmt::format("remote device {} ({} on {})", rank.value() - 1, description_.kind,
                         service)) {}

status remote_device::send(std::string_view packet) {
    status sent = connection_.send(packet);
    if (sent) {
        return sent;
    }
    std::string const why = explain_loss();
    return error(sent.failure().code(),
                 why.empty() ? fmt::format("{}: {}", label_, sent.failure().message()) : why);
}

result<std::uint64_t> remote_device::call_session(frame what, std::uint64_t value) {
    std::lock_guard const only(request_mutex_);
    packet_writer request(what);
    request.number(value);
    DIOMP_TRY(send(request.take()));
    std::unique_lock lock(mutex_);
    auto reply = wait_for_reply(lock, "allocating memory");
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
    auto address = call_session(frame::allocate, nbytes);
    DIOMP_TRY(address);
    if (address.value() == 0) {
        return error(OMPX_ERR_NOMEM, fmt::format("{}: the device has no space for {}", label_,
                                                 format_size(nbytes)));
    }
    std::lock_guard const guard(allocated_mutex_);
    allocated_.insert_or_assign(address.value(), nbytes);
    return address;
}

bool remote_device::release(std::uint64_t address) {
    if (!description_.has_memory_in_slot()) {
        {
            std::lock_guard const guard(allocated_mutex_);
            allocated_.erase(address);
        }
        auto done = call_session(frame::release, address);
        return done && done.value() != 0;
    }
    return slot_.release(address);
}

bool remote_device::contains(const range_map &ranges, std::uint64_t address, std::size_t nbytes) {
    auto const next = ranges.upper_bound(address);
    if (next == ranges.begin()) {
        return false;
    }
    auto const &[begin, size] = *std::prev(next);
    std::uint64_t const offset = address - begin;
    return offset < size && nbytes <= size - offset;
}

bool remote_device::is_zero_copy(std::uint64_t address, std::size_t nbytes) const {
    if (!is_network_reachable_) {
        return false;
    }
    std::lock_guard const guard(allocated_mutex_);
    return contains(allocated_, address, nbytes) || contains(variables_, address, nbytes);
}

status remote_device::check(std::uint64_t address, std::size_t nbytes) {
    if (has_failed()) {
        return error(OMPX_ERR_PEER, failure());
    }
    if (is_segment(address)) {
        return slot_.check(address, nbytes);
    }
    if (description_.has_memory_in_slot()) {
        return {}; // the data of an image exceeds its symbols
    }
    std::lock_guard const guard(allocated_mutex_);
    if (contains(allocated_, address, nbytes) || contains(symbols_, address, nbytes)) {
        return {};
    }
    return error(OMPX_ERR_RANGE,
                 fmt::format("{}: {} bytes at {:#x} are not inside memory allocated "
                             "there, nor in a variable of an image",
                             label_, nbytes, address));
}

std::string remote_device::failure() const {
    std::lock_guard const guard(mutex_);
    return failure_;
}

void remote_device::fail(std::string why) {
    {
        std::lock_guard const guard(mutex_);
        if (failed_.load(std::memory_order_relaxed)) {
            return;
        }
        failure_ = fmt::format("{}: {}", label_, why);
        failed_.store(true, std::memory_order_release);
    }
    state_changed_.notify_all();
    connection_.shut_down();
}

void remote_device::suspect(std::string why) {
    std::lock_guard const guard(mutex_);
    if (suspicion_.empty()) {
        suspicion_ = std::move(why);
        suspected_since_ = std::chrono::steady_clock::now();
    }
}

bool remote_device::check_suspicion() {
    std::string why;
    {
        std::lock_guard const guard(mutex_);
        if (suspicion_.empty() || failed_.load(std::memory_order_relaxed)) {
            return false;
        }
        if (std::chrono::steady_clock::now() - suspected_since_ < suspicion_timeout) {
            return true;
        }
        why = suspicion_;
    }
    fail(why);
    return false;
}

std::string remote_device::explain_loss() {
    std::unique_lock lock(mutex_);
    if (!suspicion_.empty()) {
        state_changed_.wait_for(lock, 2 * suspicion_timeout, [this] { return has_failed(); });
    }
    return failure_;
}

bool remote_device::handle_frame(std::string_view packet) {
    packet_reader reader(packet);
    switch (reader.type<frame>()) {
    case frame::output: {
        unsigned const stream = reader.number<std::uint8_t>();
        std::string_view const bytes = reader.rest();
        if (stream == 1 || stream == 2) {
            write_fully(stream, bytes);
            output_bytes_[stream - 1].fetch_add(bytes.size(), std::memory_order_release);
        }
        return true;
    }
    case frame::wanted:
    case frame::loaded:
    case frame::failed:
    case frame::done: {
        std::lock_guard const guard(mutex_);
        replies_.emplace_back(packet);
        state_changed_.notify_all();
        return true;
    }
    case frame::stopped: {
        if (auto const kernels = decode_stopped(reader); observer_ != nullptr && kernels) {
            observer_->ran(index(), kernels.value());
        }
        std::lock_guard const guard(mutex_);
        stopped_.store(true, std::memory_order_release);
        state_changed_.notify_all();
        return true;
    }
    case frame::ended: {
        std::string why(reader.text());
        if (reader.rest_size() >= sizeof(std::uint64_t)) {
            auto const address = reader.number<std::uint64_t>();
            why += fmt::format(", at address {:#x}", address);
            if (!is_segment(address)) {
                why += describe_host_address(address);
            }
        }
        fail(std::move(why));
        return false;
    }
    default:
        fail("the service sent an unexpected frame");
        return false;
    }
}

result<std::string> remote_device::wait_for_reply(std::unique_lock<std::mutex> &lock,
                                                  const char *what) {
    // No timeout: the connection closes if the service is lost, and that ends the wait.
    state_changed_.wait(lock, [this] { return has_failed() || !replies_.empty(); });
    if (has_failed()) {
        return error(OMPX_ERR_PEER, fmt::format("{} (while {})", failure_, what));
    }
    std::string reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
}

std::vector<std::uint64_t> remote_device::record_symbols(const std::vector<symbol> &symbols,
                                                         const std::vector<location> &locations) {
    std::vector<std::uint64_t> addresses;
    addresses.reserve(symbols.size());
    auto const note = [](range_map &ranges, std::uint64_t address, std::size_t nbytes) {
        std::size_t &known = ranges[address]; // symbols may share an address
        known = std::max(known, nbytes);
    };
    std::lock_guard const guard(allocated_mutex_);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        location const &found = locations[i];
        addresses.push_back(found.address);
        if (found.address != 0 && symbols[i].nbytes > 0) {
            note(symbols_, found.address, symbols[i].nbytes);
        }
        if (found.is_variable) {
            note(variables_, found.address, symbols[i].nbytes);
        }
    }
    return addresses;
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
    std::lock_guard const only(request_mutex_);
    DIOMP_TRY(send(encode(load_frame{identify(image), symbols})));
    std::unique_lock lock(mutex_);
    auto reply = wait_for_reply(lock, "loading an image");
    DIOMP_TRY(reply);
    if (packet_reader(reply.value()).type<frame>() == frame::wanted) {
        lock.unlock();
        packet_writer packet(frame::image);
        packet.bytes(image);
        DIOMP_TRY(send(packet.take()));
        lock.lock();
        reply = wait_for_reply(lock, "loading an image");
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
    std::vector<std::uint64_t> addresses = record_symbols(symbols, locations.value());
    if (only_changes_memory(image)) {
        deferred_.add_memory_only(addresses);
    }
    return addresses;
}

} // namespace diomp::offload::remote
