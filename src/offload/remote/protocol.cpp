// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/protocol.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>

#include <xxhash.h>

namespace diomp::offload::remote {
namespace {

error malformed(const char *what) {
    return error(OMPX_ERR_ARG, fmt::format("malformed {}", what),
                 "the peer runs another version of DiOMP, or another program");
}

} // namespace

image_id identify(std::string_view image) {
    XXH128_hash_t const hash = XXH3_128bits(image.data(), image.size());
    return {image.size(), hash.low64, hash.high64};
}

std::string to_string(const image_id &id) {
    return fmt::format("{:016x}{:016x}-{}", id.high, id.low, id.nbytes);
}

std::string encode(const device_description &description) {
    packet_writer packet(frame::accepted);
    packet.number(description.num_devices);
    packet.number(description.machine);
    packet.number(description.memory_bytes);
    packet.number(description.num_threads);
    packet.text(description.host);
    packet.text(description.identity.node);
    packet.text(description.identity.network);
    packet.text(description.kind);
    packet.text(description.name);
    packet.text(description.architecture);
    packet.number(description.own_memory_bytes);
    packet.number(static_cast<std::uint8_t>(description.has_rdma_adapter ? 1 : 0));
    return packet.take();
}

result<device_description> decode_device_description(packet_reader &packet) {
    device_description description;
    description.num_devices = packet.number<std::uint32_t>();
    description.machine = packet.number<std::uint32_t>();
    description.memory_bytes = packet.number<std::uint64_t>();
    description.num_threads = packet.number<std::uint32_t>();
    description.host = packet.text();
    description.identity.node = packet.text();
    description.identity.network = packet.text();
    description.kind = packet.text();
    description.name = packet.text();
    description.architecture = packet.text();
    description.own_memory_bytes = packet.number<std::uint64_t>();
    description.has_rdma_adapter = packet.number<std::uint8_t>() != 0;
    if (!packet.ok() || !packet.at_end() || description.num_devices == 0) {
        return malformed("description of a device");
    }
    return description;
}

std::string encode(const join_frame &join) {
    packet_writer packet(frame::join);
    packet.number(join.rank);
    packet.number(join.size);
    packet.number(join.num_clients);
    packet.number(join.client);
    packet.text(join.conduit);
    packet.number(static_cast<std::uint8_t>(join.is_on_one_host ? 1 : 0));
    packet.number(static_cast<std::uint8_t>(join.encrypts_data ? 1 : 0));
    packet.number(join.node_size);
    packet.number(static_cast<std::uint8_t>(join.has_runtime ? 1 : 0));
    packet.text(join.timeout);
    packet.number(join.segment_bytes);
    return packet.take();
}

result<join_frame> decode_join(packet_reader &packet) {
    join_frame join;
    join.rank = packet.number<std::uint32_t>();
    join.size = packet.number<std::uint32_t>();
    join.num_clients = packet.number<std::uint32_t>();
    join.client = packet.number<std::uint32_t>();
    join.conduit = packet.text();
    join.is_on_one_host = packet.number<std::uint8_t>() != 0;
    join.encrypts_data = packet.number<std::uint8_t>() != 0;
    join.node_size = packet.number<std::uint32_t>();
    join.has_runtime = packet.number<std::uint8_t>() != 0;
    join.timeout = packet.text();
    join.segment_bytes = packet.number<std::uint64_t>();
    if (!packet.ok() || !packet.at_end() || join.client >= join.num_clients ||
        join.rank < join.num_clients || join.rank >= join.size || join.size > max_ranks ||
        join.node_size > max_ranks) {
        return malformed("rank in the world of a client");
    }
    return join;
}

std::string encode(const load_frame &load) {
    packet_writer packet(frame::load);
    packet.number(load.image.nbytes);
    packet.number(load.image.low);
    packet.number(load.image.high);
    packet.number(static_cast<std::uint32_t>(load.symbols.size()));
    for (symbol const &each : load.symbols) {
        packet.text(each.name);
        packet.number(each.nbytes);
    }
    return packet.take();
}

result<load_frame> decode_load(packet_reader &packet) {
    load_frame load;
    load.image.nbytes = packet.number<std::uint64_t>();
    load.image.low = packet.number<std::uint64_t>();
    load.image.high = packet.number<std::uint64_t>();
    auto const count = packet.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && packet.ok(); ++i) {
        symbol each;
        each.name = packet.text();
        each.nbytes = packet.number<std::uint64_t>();
        load.symbols.push_back(std::move(each));
    }
    if (!packet.ok() || !packet.at_end()) {
        return malformed("request to load an image");
    }
    return load;
}

std::string encode(std::span<const location> locations) {
    packet_writer packet(frame::loaded);
    for (location const &each : locations) {
        packet.number(each.address);
        packet.number(static_cast<std::uint8_t>(each.is_variable ? 1 : 0));
    }
    return packet.take();
}

result<std::vector<location>> decode_loaded(packet_reader &packet, std::size_t count) {
    std::vector<location> locations(count);
    for (location &each : locations) {
        each.address = packet.number<std::uint64_t>();
        each.is_variable = packet.number<std::uint8_t>() != 0;
    }
    if (!packet.ok() || !packet.at_end()) {
        return malformed("list of symbols");
    }
    return locations;
}

std::string encode(std::span<const kernel_time> times) {
    packet_writer packet(frame::stopped);
    packet.number(static_cast<std::uint32_t>(times.size()));
    for (kernel_time const &each : times) {
        packet.text(each.name);
        packet.number(each.calls);
        packet.number(each.total_ns);
        packet.number(each.longest_ns);
    }
    return packet.take();
}

result<std::vector<kernel_time>> decode_stopped(packet_reader &packet) {
    std::vector<kernel_time> times;
    auto const count = packet.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && packet.ok(); ++i) {
        kernel_time each;
        each.name = packet.text();
        each.calls = packet.number<std::uint64_t>();
        each.total_ns = packet.number<std::uint64_t>();
        each.longest_ns = packet.number<std::uint64_t>();
        times.push_back(std::move(each));
    }
    if (!packet.ok() || !packet.at_end()) {
        return malformed("list of kernels");
    }
    return times;
}

void append(packet_writer &to, const launch_arguments &launch) {
    to.number(static_cast<std::uint8_t>(operation::launch));
    to.number(launch.kernel);
    to.number(launch.version);
    for (int i = 0; i < 3; ++i) {
        to.number(launch.num_teams[i]);
        to.number(launch.thread_limit[i]);
    }
    to.number(launch.trip_count);
    to.number(launch.dynamic_memory_bytes);
    to.text(launch.arguments);
}

launch_arguments decode_launch(packet_reader &from) {
    launch_arguments launch;
    launch.kernel = from.number<std::uint64_t>();
    launch.version = from.number<std::uint32_t>();
    for (int i = 0; i < 3; ++i) {
        launch.num_teams[i] = from.number<std::uint32_t>();
        launch.thread_limit[i] = from.number<std::uint32_t>();
    }
    launch.trip_count = from.number<std::uint64_t>();
    launch.dynamic_memory_bytes = from.number<std::uint32_t>();
    launch.arguments = from.text();
    return launch;
}

void append(packet_writer &to, const zero_copy_transfer &what) {
    to.number(what.address);
    to.number(what.peer_address);
    to.number(what.nbytes);
}

zero_copy_transfer decode_zero_copy(packet_reader &from) {
    zero_copy_transfer what;
    what.address = from.number<std::uint64_t>();
    what.peer_address = from.number<std::uint64_t>();
    what.nbytes = from.number<std::uint64_t>();
    return what;
}

std::string encode(const peer_copy &copy) {
    packet_writer packet;
    packet.number(copy.ticket);
    append(packet, copy.transfer);
    packet.number(static_cast<std::uint8_t>(copy.source_memory));
    return packet.take();
}

result<peer_copy> decode_peer_copy(std::string_view bytes) {
    packet_reader packet(bytes);
    peer_copy copy;
    copy.ticket = packet.number<std::uint64_t>();
    copy.transfer = decode_zero_copy(packet);
    auto const memory = packet.number<std::uint8_t>();
    if (!packet.ok() || !packet.at_end() ||
        memory > static_cast<std::uint8_t>(transport::memory_kind::hip)) {
        return malformed("request of another device");
    }
    copy.source_memory = static_cast<transport::memory_kind>(memory);
    return copy;
}

std::string encode(const call_error &of) {
    packet_writer packet;
    packet.number(static_cast<std::uint32_t>(of.code));
    packet.text(of.function);
    packet.text(of.arguments);
    packet.text(of.message);
    packet.text(of.remedy);
    return packet.take();
}

result<call_error> decode_call_error(std::string_view bytes) {
    packet_reader packet(bytes);
    call_error of;
    of.code = static_cast<std::int32_t>(packet.number<std::uint32_t>());
    of.function = packet.text();
    of.arguments = packet.text();
    of.message = packet.text();
    of.remedy = packet.text();
    if (!packet.ok() || !packet.at_end() || of.code == 0) {
        return malformed("error of a call");
    }
    return of;
}

std::string encode_call_outcome(const std::optional<call_error> &of) {
    packet_writer packet;
    packet.text(of ? encode(*of) : std::string());
    std::string bytes = packet.take();
    bytes.resize(call_outcome_bytes);
    return bytes;
}

result<std::optional<call_error>> decode_call_outcome(std::string_view bytes) {
    packet_reader packet(bytes);
    std::string_view const encoded = packet.text();
    if (!packet.ok()) {
        return malformed("outcome of a call");
    }
    if (encoded.empty()) {
        return std::optional<call_error>{};
    }
    auto of = decode_call_error(encoded);
    DIOMP_TRY(of);
    return std::optional(of.take());
}

std::string encode(const batch_reply &reply) {
    packet_writer packet;
    packet.number(reply.queue);
    packet.number(reply.batch);
    packet.number(static_cast<std::uint8_t>(reply.failed ? 1 : 0));
    packet.number(reply.output_bytes[0]);
    packet.number(reply.output_bytes[1]);
    packet.number(reply.kernel);
    packet.number(reply.kernel_us);
    packet.text(reply.call_error);
    packet.bytes(reply.rest);
    return packet.take();
}

result<batch_reply> decode_reply(std::string_view bytes) {
    packet_reader packet(bytes);
    batch_reply reply;
    reply.queue = packet.number<std::uint64_t>();
    reply.batch = packet.number<std::uint64_t>();
    reply.failed = packet.number<std::uint8_t>() != 0;
    reply.output_bytes[0] = packet.number<std::uint64_t>();
    reply.output_bytes[1] = packet.number<std::uint64_t>();
    reply.kernel = packet.number<std::uint64_t>();
    reply.kernel_us = packet.number<std::uint64_t>();
    reply.call_error = packet.text();
    if (!packet.ok()) {
        return malformed("reply");
    }
    reply.rest = packet.rest();
    return reply;
}

} // namespace diomp::offload::remote
