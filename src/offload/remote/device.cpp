// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/settings.h"
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

constexpr std::chrono::seconds patience_with_service{1};

/// All of it, to a stream of this process and in its order with what stdio holds back.
void write_out(unsigned stream, std::string_view bytes) {
    std::fflush(stream == 1 ? stdout : stderr);
    int const fd = stream == 1 ? STDOUT_FILENO : STDERR_FILENO;
    while (!bytes.empty()) {
        ssize_t const written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return; // nobody reads it
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// What an address that a session has crashed by is in this process; "" if it is nothing here.
std::string own_use_of(std::uint64_t address) {
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
                               "functions, function pointers and variables of the host mean "
                               "nothing on a remote device, see \"Limits\" in docs/remote.md)",
                               file);
        }
        return " (memory of the program's process here that is not mapped on the device: map what "
               "pointers in mapped data lead to)";
    }
    return {};
}

} // namespace

remote_device::remote_device(control_link link, offer offered, std::string service, world_rank rank)
    : link_(std::move(link)), offer_(std::move(offered)), rank_(rank),
      label_(fmt::format("remote device {} ({} on {})", rank.value() - 1, offer_.kind, service)) {}

status remote_device::send(std::string_view packet) {
    status sent = link_.send(packet);
    if (sent) {
        return sent;
    }
    std::string const why = explain_loss();
    return error(sent.failure().code(),
                 why.empty() ? fmt::format("{}: {}", label_, sent.failure().message()) : why);
}

result<std::uint64_t> remote_device::ask_for(frame what, std::uint64_t value) {
    std::lock_guard const only(asking_);
    packet_writer question(what);
    question.number(value);
    DIOMP_TRY(send(question.take()));
    std::unique_lock lock(mutex_);
    auto answer = wait_for_answer(lock, "asking for memory");
    DIOMP_TRY(answer);
    packet_reader reader(answer.value());
    if (reader.type<frame>() != frame::done) {
        return error(OMPX_ERR_SYSTEM, fmt::format("{}: malformed answer", label_));
    }
    return reader.number<std::uint64_t>();
}

result<std::uint64_t> remote_device::allocate(std::size_t nbytes) {
    if (offer_.has_memory_in_slot()) {
        return slot_.allocate(nbytes);
    }
    auto address = ask_for(frame::allocate, nbytes);
    DIOMP_TRY(address);
    if (address.value() == 0) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("{}: the device has no room for {}", label_, format_size(nbytes)));
    }
    std::lock_guard const guard(allocated_mutex_);
    allocated_.insert_or_assign(address.value(), nbytes);
    return address;
}

bool remote_device::release(std::uint64_t address) {
    if (!offer_.has_memory_in_slot()) {
        {
            std::lock_guard const guard(allocated_mutex_);
            allocated_.erase(address);
        }
        auto done = ask_for(frame::release, address);
        return done && done.value() != 0;
    }
    return slot_.release(address);
}

bool remote_device::is_in(const parts &some, std::uint64_t address, std::size_t nbytes) {
    auto const behind = some.upper_bound(address);
    if (behind == some.begin()) {
        return false;
    }
    auto const &[begin, size] = *std::prev(behind);
    std::uint64_t const offset = address - begin;
    return offset < size && nbytes <= size - offset;
}

bool remote_device::is_straight(std::uint64_t address, std::size_t nbytes) const {
    if (!is_reached_) {
        return false;
    }
    std::lock_guard const guard(allocated_mutex_);
    return is_in(allocated_, address, nbytes) || is_in(variables_, address, nbytes);
}

status remote_device::check(std::uint64_t address, std::size_t nbytes) {
    if (has_failed()) {
        return error(OMPX_ERR_PEER, failure());
    }
    if (is_segment(address)) {
        return slot_.check(address, nbytes);
    }
    if (offer_.has_memory_in_slot()) {
        return {}; // an image has more data than symbols
    }
    std::lock_guard const guard(allocated_mutex_);
    if (is_in(allocated_, address, nbytes) || is_in(symbols_, address, nbytes)) {
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
    answered_.notify_all();
    link_.shut();
}

void remote_device::suspect(std::string why) {
    std::lock_guard const guard(mutex_);
    if (suspicion_.empty()) {
        suspicion_ = std::move(why);
        suspected_since_ = std::chrono::steady_clock::now();
    }
}

bool remote_device::look_at_suspicion() {
    std::string why;
    {
        std::lock_guard const guard(mutex_);
        if (suspicion_.empty() || failed_.load(std::memory_order_relaxed)) {
            return false;
        }
        if (std::chrono::steady_clock::now() - suspected_since_ < patience_with_service) {
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
        answered_.wait_for(lock, 2 * patience_with_service, [this] { return has_failed(); });
    }
    return failure_;
}

bool remote_device::take_frame(std::string_view packet) {
    packet_reader reader(packet);
    switch (reader.type<frame>()) {
    case frame::output: {
        unsigned const stream = reader.number<std::uint8_t>();
        std::string_view const bytes = reader.rest();
        if (stream == 1 || stream == 2) {
            write_out(stream, bytes);
            output_bytes_[stream - 1].fetch_add(bytes.size(), std::memory_order_release);
        }
        return true;
    }
    case frame::wanted:
    case frame::loaded:
    case frame::failed:
    case frame::done: {
        std::lock_guard const guard(mutex_);
        answers_.emplace_back(packet);
        answered_.notify_all();
        return true;
    }
    case frame::stopped: {
        if (auto const kernels = decode_stopped(reader); watch_ != nullptr && kernels) {
            watch_->ran(index(), kernels.value());
        }
        std::lock_guard const guard(mutex_);
        stopped_.store(true, std::memory_order_release);
        answered_.notify_all();
        return true;
    }
    case frame::ended: {
        std::string why(reader.text());
        if (reader.rest_size() >= sizeof(std::uint64_t)) {
            auto const address = reader.number<std::uint64_t>();
            why += fmt::format(", at address {:#x}", address);
            if (!is_segment(address)) {
                why += own_use_of(address);
            }
        }
        fail(std::move(why));
        return false;
    }
    default:
        fail("the service sent a frame that nobody asked for");
        return false;
    }
}

result<std::string> remote_device::wait_for_answer(std::unique_lock<std::mutex> &lock,
                                                   const char *what) {
    // A service that is gone ends the connection: there is no need for a limit here.
    answered_.wait(lock, [this] { return has_failed() || !answers_.empty(); });
    if (has_failed()) {
        return error(OMPX_ERR_PEER, fmt::format("{} (while {})", failure_, what));
    }
    std::string answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
}

std::vector<std::uint64_t> remote_device::take_places(const std::vector<symbol> &symbols,
                                                      const std::vector<place> &places) {
    std::vector<std::uint64_t> addresses;
    addresses.reserve(symbols.size());
    auto const note = [](parts &some, std::uint64_t address, std::size_t nbytes) {
        std::size_t &known = some[address]; // symbols may share a place
        known = std::max(known, nbytes);
    };
    std::lock_guard const guard(allocated_mutex_);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        place const &found = places[i];
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
    if (watch_ == nullptr) {
        return load_unobserved(image, symbols);
    }
    auto const begin = std::chrono::steady_clock::now();
    auto addresses = load_unobserved(image, symbols);
    if (addresses) {
        watch_->loaded(index(), image.size(), begin, std::chrono::steady_clock::now());
        for (std::size_t i = 0; i < symbols.size(); ++i) {
            watch_->found(index(), addresses.value()[i], symbols[i].name);
        }
    }
    return addresses;
}

result<std::vector<std::uint64_t>>
remote_device::load_unobserved(std::string_view image, const std::vector<symbol> &symbols) {
    std::lock_guard const only(asking_);
    DIOMP_TRY(send(encode(load_frame{identify(image), symbols})));
    std::unique_lock lock(mutex_);
    auto answer = wait_for_answer(lock, "loading an image");
    DIOMP_TRY(answer);
    if (packet_reader(answer.value()).type<frame>() == frame::wanted) {
        lock.unlock();
        packet_writer packet(frame::image);
        packet.bytes(image);
        DIOMP_TRY(send(packet.take()));
        lock.lock();
        answer = wait_for_answer(lock, "loading an image");
        DIOMP_TRY(answer);
    }
    packet_reader reader(answer.value());
    auto const type = reader.type<frame>();
    if (type == frame::failed) {
        return error(OMPX_ERR_UNSUPPORTED, fmt::format("{}: {}", label_, reader.text()));
    }
    auto places = type == frame::loaded
                      ? decode_loaded(reader, symbols.size())
                      : result<std::vector<place>>(error(OMPX_ERR_SYSTEM, "malformed answer"));
    if (!places) {
        return error(OMPX_ERR_SYSTEM, fmt::format("{}: {}", label_, places.failure().message()));
    }
    std::vector<std::uint64_t> addresses = take_places(symbols, places.value());
    if (keeps_to_memory(image)) {
        posted_.note_quiet(addresses);
    }
    return addresses;
}

} // namespace diomp::offload::remote
