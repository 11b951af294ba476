// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Valid packets of each kind, and one way to take any bytes apart: for unit tests and for the
// fuzzer, whose inputs begin with the kind.
#pragma once

#include "offload/remote/protocol.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diomp_test {

enum class packet_kind : std::uint8_t {
    join,
    device_description,
    load,
    launch,
    batch_reply,
    peer_copy,
    loaded,
    stopped,
    call_error,
    count
};

/// Of the sample of frame::loaded: who asked knows how many symbols there were.
constexpr std::size_t num_places = 3;

struct sample {
    packet_kind kind;
    std::string bytes;
    /// Whether its last part may have any length.
    bool has_open_end = false;
};

inline std::vector<sample> samples() {
    namespace remote = diomp::offload::remote;
    std::vector<sample> all;
    remote::join_frame join;
    join.rank = 2;
    join.size = 5;
    join.num_clients = 2;
    join.client = 1;
    join.has_runtime = true;
    join.timeout = "2.5";
    join.conduit = "tcp";
    join.is_on_one_host = true;
    join.encrypts_data = true;
    join.node_size = 3;
    all.push_back({packet_kind::join, encode(join)});
    remote::device_description offered;
    offered.num_devices = 4;
    offered.machine = 62;
    offered.memory_bytes = std::uint64_t{1} << 40;
    offered.num_threads = 96;
    offered.host = "hosta";
    offered.identity = {"hosta-12-34", "5678"};
    offered.kind = "cpu";
    offered.name = "a processor";
    offered.has_rdma_adapter = true;
    all.push_back({packet_kind::device_description, encode(offered)});
    remote::load_frame load;
    load.image = {1234, 5, 6};
    load.symbols = {{"first", 8}, {"", 0}, {"third", std::uint64_t{1} << 33}};
    all.push_back({packet_kind::load, encode(load)});
    all.push_back({packet_kind::load, encode(remote::load_frame{})});
    remote::launch_arguments launch;
    std::string const arguments(5 * sizeof(std::uint64_t), 'a');
    launch.kernel = 0x7f0012345678;
    launch.version = 3;
    launch.num_teams[1] = 7;
    launch.thread_limit[2] = 9;
    launch.trip_count = 1000;
    launch.dynamic_memory_bytes = 64;
    launch.arguments = arguments;
    diomp::packet_writer launched;
    append(launched, launch);
    all.push_back({packet_kind::launch, launched.take()});
    remote::batch_reply answer;
    answer.queue = 3;
    answer.batch = 77;
    answer.failed = true;
    answer.output_bytes[1] = 12;
    answer.rest = "why it failed";
    all.push_back({packet_kind::batch_reply, encode(answer), true});
    remote::peer_copy copy;
    copy.ticket = 9;
    copy.transfer = {0x7f0000001000, 0x7f0000002000, 4097};
    copy.source_memory = diomp::transport::memory_kind::hip;
    all.push_back({packet_kind::peer_copy, encode(copy)});
    remote::location const locations[num_places] = {{0x7f0000003000, true}, {}, {77, false}};
    all.push_back({packet_kind::loaded, encode(locations)});
    remote::kernel_time const times[] = {{"a kernel", 3, 4000, 2000}, {"", 1, 5, 5}};
    all.push_back({packet_kind::stopped, encode(times)});
    all.push_back(
        {packet_kind::call_error,
         encode(remote::call_error{OMPX_ERR_RANK, "ompx_put", "rank=9", "no such rank", ""})});
    return all;
}

/// What the bytes say, written again; "" if they are not valid. Equal to the bytes where they are,
/// up to numbers that count as true.
inline std::string read_and_write(packet_kind kind, std::string_view bytes) {
    namespace remote = diomp::offload::remote;
    diomp::packet_reader packet(bytes);
    auto const is_of_type = [&](auto type) { return packet.type<decltype(type)>() == type; };
    switch (kind) {
    case packet_kind::join: {
        auto join = is_of_type(remote::frame::join) ? remote::decode_join(packet)
                                                    : diomp::error(OMPX_ERR_ARG, "type");
        return join ? encode(join.value()) : "";
    }
    case packet_kind::device_description: {
        auto offered = is_of_type(remote::frame::accepted)
                           ? remote::decode_device_description(packet)
                           : diomp::error(OMPX_ERR_ARG, "type");
        return offered ? encode(offered.value()) : "";
    }
    case packet_kind::call_error: {
        auto of = remote::decode_call_error(bytes);
        return of ? encode(of.value()) : "";
    }
    case packet_kind::load: {
        auto load = is_of_type(remote::frame::load) ? remote::decode_load(packet)
                                                    : diomp::error(OMPX_ERR_ARG, "type");
        return load ? encode(load.value()) : "";
    }
    case packet_kind::launch: {
        if (!is_of_type(remote::operation::launch)) {
            return "";
        }
        auto const launch = remote::decode_launch(packet);
        diomp::packet_writer again;
        append(again, launch);
        again.bytes(packet.ok() ? packet.rest() : "");
        return packet.ok() ? again.take() : "";
    }
    case packet_kind::batch_reply: {
        auto answer = remote::decode_reply(bytes);
        return answer ? encode(answer.value()) : "";
    }
    case packet_kind::peer_copy: {
        auto copy = remote::decode_peer_copy(bytes);
        return copy ? encode(copy.value()) : "";
    }
    case packet_kind::loaded: {
        auto locations = is_of_type(remote::frame::loaded)
                             ? remote::decode_loaded(packet, num_places)
                             : diomp::error(OMPX_ERR_ARG, "type");
        return locations ? encode(locations.value()) : "";
    }
    case packet_kind::stopped: {
        auto times = is_of_type(remote::frame::stopped) ? remote::decode_stopped(packet)
                                                        : diomp::error(OMPX_ERR_ARG, "type");
        return times ? encode(times.value()) : "";
    }
    case packet_kind::count:
        break;
    }
    return "";
}

} // namespace diomp_test
