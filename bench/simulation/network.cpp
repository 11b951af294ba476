// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "network.h"

#include <atomic>
#include <cstring>
#include <utility>

namespace diomp::simulation {
namespace {

constexpr std::size_t max_message_bytes = 4096;
constexpr std::size_t max_long_bytes = std::size_t{1} << 20;

/// Ranks always wake each other, as if all slept.
std::atomic<std::uint32_t> const sleepers{1};

packet make_packet(world_rank self, transport::handler_id handler,
                   std::span<const std::byte> payload) {
    return {.source = self, .handler = handler, .payload = {payload.begin(), payload.end()}};
}

void deliver_and_notify(port &target, packet arrived) {
    target.deliver(std::move(arrived));
    target.notify();
}

} // namespace

node::node(fabric &shared, world_rank self) : shared_(shared), self_(self), own_(shared.of(self)) {
    caps_ = {"sim-node", max_message_bytes, &sleepers};
}

bool node::try_send(world_rank peer, transport::handler_id handler,
                    std::span<const std::byte> payload) {
    port &target = shared_.of(peer);
    target.deliver(make_packet(self_, handler, payload));
    target.notify_after(shared_.hardware.round_s());
    return true;
}

void node::sleep(std::uint32_t /*seen*/, std::chrono::microseconds /*limit*/) { own_.wait(); }

bool node::idle_wait(transport::wait_kind /*what*/, std::uint32_t /*seen*/,
                     std::chrono::microseconds /*limit*/, function_ref<bool()> ready) {
    if (ready()) {
        return true;
    }
    if (!own_.has_packets()) {
        own_.wait();
    }
    return false;
}

void node::wake_for_store(world_rank peer) {
    if (peer != self_) {
        shared_.of(peer).notify_after(shared_.hardware.round_s());
    }
}

status node::write_private(world_rank, std::uint64_t, const void *, std::size_t) {
    return error(OMPX_ERR_UNSUPPORTED, "the simulation has no private memory of other ranks");
}

status node::read_private(world_rank, std::uint64_t, void *, std::size_t) {
    return error(OMPX_ERR_UNSUPPORTED, "the simulation has no private memory of other ranks");
}

network::network(fabric &shared, world_rank self)
    : shared_(shared), self_(self), own_(shared.of(self)) {
    caps_.name = "sim";
    caps_.max_message_bytes = max_message_bytes;
    caps_.max_am_long = max_long_bytes;
}

void network::start(world_rank peer, std::size_t nbytes, std::function<void()> arrived) {
    ++own_.sent().messages;
    own_.sent().bytes += nbytes;
    spend(shared_.hardware.overhead_of(nbytes));
    own_.send(shared_.of(peer), nbytes, std::move(arrived));
}

bool network::try_send(world_rank peer, transport::handler_id handler,
                       std::span<const std::byte> payload) {
    port &target = shared_.of(peer);
    start(peer, payload.size(), [&target, sent = make_packet(self_, handler, payload)] {
        deliver_and_notify(target, sent);
    });
    return true;
}

result<bool> network::send_long(world_rank peer, transport::handler_id handler,
                                std::span<const std::byte> payload, std::span<const std::byte> data,
                                transport::completion &source_free) {
    if (data.size() > max_long_bytes) {
        return false;
    }
    packet sent{.source = self_,
                .handler = handler,
                .payload = {payload.begin(), payload.end()},
                .is_long = true,
                .long_bytes = data.size()};
    if (shared_.moves_data) {
        sent.long_payload.assign(data.begin(), data.end());
    }
    source_free.begin();
    std::size_t const nbytes = sent.nbytes();
    start(peer, nbytes,
          [&sender = own_, &target = shared_.of(peer), sent = std::move(sent), &source_free] {
              deliver_and_notify(target, sent);
              source_free.end();
              sender.notify();
          });
    return true;
}

status network::put(world_rank peer, std::uint64_t remote_address, const void *source,
                    std::size_t nbytes, transport::completion &source_free) {
    source_free.begin();
    start(peer, nbytes, [this, remote_address, source, nbytes, &source_free] {
        if (shared_.moves_data) {
            std::memcpy(reinterpret_cast<void *>(remote_address), source, nbytes);
        }
        source_free.end();
        own_.notify();
    });
    return {};
}

status network::get(world_rank, std::uint64_t, void *, std::size_t, transport::completion &) {
    return error(OMPX_ERR_UNSUPPORTED, "the simulated network has no gets");
}

result<bool> network::put_with_message(world_rank, std::uint64_t, std::span<const std::byte>,
                                       transport::handler_id, std::span<const std::byte>,
                                       transport::completion &) {
    return false;
}

void network::set_am_long_handler(const transport::am_long_handler &handle,
                                  const transport::recv_buffer_callback &find_buffer) {
    handle_long_ = handle;
    find_buffer_ = find_buffer;
}

int network::poll(transport::message_handler handle) {
    if (!own_.has_packets()) {
        own_.wait();
        if (!own_.has_packets()) {
            return 0;
        }
    }
    packet const first = own_.next();
    spend(shared_.hardware.overhead_of(first.nbytes()));
    if (first.is_long) {
        handle_long(first);
    } else {
        handle({first.source, first.handler, first.payload, {}});
    }
    return 1;
}

void network::handle_long(const packet &arrived) {
    transport::message incoming{arrived.source, arrived.handler, arrived.payload, {}};
    std::byte *const found = find_buffer_ ? find_buffer_(incoming, arrived.long_bytes) : nullptr;
    std::vector<std::byte> elsewhere;
    if (found == nullptr) {
        elsewhere.resize(arrived.long_bytes);
    }
    std::byte *const buffer = found != nullptr ? found : elsewhere.data();
    if (!arrived.long_payload.empty()) {
        std::memcpy(buffer, arrived.long_payload.data(), arrived.long_bytes);
    }
    incoming.long_payload = {buffer, arrived.long_bytes};
    handle_long_(incoming);
}

bool network::idle_wait(std::chrono::microseconds /*limit*/, function_ref<bool()> is_over) {
    if (!is_over() && !own_.has_packets()) {
        own_.wait();
    }
    return true;
}

} // namespace diomp::simulation
