// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/protocol.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>

#include <xxhash.h>

namespace diomp::offload::remote {
namespace {

error malformed(const char *what) {
    return error(OMPX_ERR_ARG, fmt::format("malformed {}", what),
                 "the peer is not of this version of DiOMP, or not DiOMP at all");
}

} // namespace

image_id identify(std::string_view image) {
    XXH128_hash_t const hash = XXH3_128bits(image.data(), image.size());
    return {image.size(), hash.low64, hash.high64};
}

std::string to_string(const image_id &id) {
    return fmt::format("{:016x}{:016x}-{}", id.high, id.low, id.nbytes);
}

std::string encode(const offer &offered) {
    packet_writer packet(frame::welcome);
    packet.number(offered.num_devices);
    packet.number(offered.machine);
    packet.number(offered.memory_bytes);
    packet.number(offered.num_threads);
    packet.text(offered.host);
    packet.text(offered.node);
    packet.text(offered.kind);
    packet.text(offered.name);
    packet.text(offered.architecture);
    packet.number(static_cast<std::uint8_t>(offered.has_rdma_adapter ? 1 : 0));
    return packet.take();
}

result<offer> decode_offer(packet_reader &packet) {
    offer offered;
    offered.num_devices = packet.number<std::uint32_t>();
    offered.machine = packet.number<std::uint32_t>();
    offered.memory_bytes = packet.number<std::uint64_t>();
    offered.num_threads = packet.number<std::uint32_t>();
    offered.host = packet.text();
    offered.node = packet.text();
    offered.kind = packet.text();
    offered.name = packet.text();
    offered.architecture = packet.text();
    offered.has_rdma_adapter = packet.number<std::uint8_t>() != 0;
    if (!packet.ok() || !packet.at_end() || offered.num_devices == 0) {
        return malformed("description of a device");
    }
    return offered;
}

std::string encode(const join_frame &join) {
    packet_writer packet(frame::join);
    packet.number(join.rank);
    packet.number(join.size);
    packet.text(join.conduit);
    packet.number(static_cast<std::uint8_t>(join.is_on_one_host ? 1 : 0));
    packet.number(static_cast<std::uint8_t>(join.encrypts_data ? 1 : 0));
    return packet.take();
}

result<join_frame> decode_join(packet_reader &packet) {
    join_frame join;
    join.rank = packet.number<std::uint32_t>();
    join.size = packet.number<std::uint32_t>();
    join.conduit = packet.text();
    join.is_on_one_host = packet.number<std::uint8_t>() != 0;
    join.encrypts_data = packet.number<std::uint8_t>() != 0;
    if (!packet.ok() || !packet.at_end() || join.rank == 0 || join.rank >= join.size ||
        join.size > max_ranks) {
        return malformed("place in the world of a client");
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

std::string encode(std::span<const place> places) {
    packet_writer packet(frame::loaded);
    for (place const &each : places) {
        packet.number(each.address);
        packet.number(static_cast<std::uint8_t>(each.is_variable ? 1 : 0));
    }
    return packet.take();
}

result<std::vector<place>> decode_loaded(packet_reader &packet, std::size_t count) {
    std::vector<place> places(count);
    for (place &each : places) {
        each.address = packet.number<std::uint64_t>();
        each.is_variable = packet.number<std::uint8_t>() != 0;
    }
    if (!packet.ok() || !packet.at_end()) {
        return malformed("list of symbols");
    }
    return places;
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

void append(packet_writer &to, const straight_transfer &what) {
    to.number(what.address);
    to.number(what.there);
    to.number(what.nbytes);
}

straight_transfer decode_straight(packet_reader &from) {
    straight_transfer what;
    what.address = from.number<std::uint64_t>();
    what.there = from.number<std::uint64_t>();
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
    copy.transfer = decode_straight(packet);
    auto const memory = packet.number<std::uint8_t>();
    if (!packet.ok() || !packet.at_end() ||
        memory > static_cast<std::uint8_t>(conduit::memory_kind::hip)) {
        return malformed("request of another device");
    }
    copy.source_memory = static_cast<conduit::memory_kind>(memory);
    return copy;
}

std::string encode(const reply &answer) {
    packet_writer packet;
    packet.number(answer.queue);
    packet.number(answer.batch);
    packet.number(static_cast<std::uint8_t>(answer.failed ? 1 : 0));
    packet.number(answer.output_bytes[0]);
    packet.number(answer.output_bytes[1]);
    packet.number(answer.kernel);
    packet.number(answer.kernel_us);
    packet.bytes(answer.rest);
    return packet.take();
}

result<reply> decode_reply(std::string_view bytes) {
    packet_reader packet(bytes);
    reply answer;
    answer.queue = packet.number<std::uint64_t>();
    answer.batch = packet.number<std::uint64_t>();
    answer.failed = packet.number<std::uint8_t>() != 0;
    answer.output_bytes[0] = packet.number<std::uint64_t>();
    answer.output_bytes[1] = packet.number<std::uint64_t>();
    answer.kernel = packet.number<std::uint64_t>();
    answer.kernel_us = packet.number<std::uint64_t>();
    if (!packet.ok()) {
        return malformed("reply");
    }
    answer.rest = packet.rest();
    return answer;
}

} // namespace diomp::offload::remote
