// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/protocol.h"

#include <fmt/format.h>

namespace diomp::launch::local {

std::size_t encoded_size(const entry &item) {
    return 3 * sizeof(std::uint32_t) + item.key.size() + item.value.size();
}

std::string encode_rank_info(const rank_info_packet &rank_info) {
    packet_writer packet(packet_type::rank_info);
    packet.number(protocol_magic);
    packet.number(rank_info.version);
    packet.number(rank_info.rank);
    packet.number(rank_info.size);
    packet.number(rank_info.node_first);
    packet.number(rank_info.node_size);
    packet.text(rank_info.job_id);
    packet.text(rank_info.host);
    return packet.take();
}

result<rank_info_packet> decode_rank_info(std::string_view bytes) {
    packet_reader packet(bytes);
    if (packet.type<packet_type>() != packet_type::rank_info ||
        packet.number<std::uint64_t>() != protocol_magic) {
        return error(OMPX_ERR_SYSTEM, "the socket does not use diomp-run's protocol");
    }
    rank_info_packet rank_info;
    // The version precedes all fields that depend on it.
    rank_info.version = packet.number<std::uint32_t>();
    if (rank_info.version != protocol_version) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("diomp-run uses protocol version {}, this libdiomp version {}",
                                 rank_info.version, protocol_version),
                     "use diomp-run and libdiomp of the same installation");
    }
    rank_info.rank = packet.number<std::uint32_t>();
    rank_info.size = packet.number<std::uint32_t>();
    rank_info.node_first = packet.number<std::uint32_t>();
    rank_info.node_size = packet.number<std::uint32_t>();
    rank_info.job_id = packet.text();
    rank_info.host = packet.text();
    bool const in_world = rank_info.rank < rank_info.size &&
                          rank_info.node_first <= rank_info.rank &&
                          rank_info.rank - rank_info.node_first < rank_info.node_size &&
                          rank_info.node_size <= rank_info.size - rank_info.node_first;
    if (!packet.ok() || !in_world) {
        return error(OMPX_ERR_SYSTEM, "diomp-run's first packet is malformed");
    }
    return rank_info;
}

std::vector<std::string> encode_entries(const std::vector<entry> &items) {
    std::vector<std::string> packets;
    for (std::size_t next = 0; next < items.size();) {
        packet_writer packet(packet_type::entries);
        std::size_t size_bytes = 1;
        do {
            size_bytes += encoded_size(items[next]);
            packet.number(items[next].owner);
            packet.text(items[next].key);
            packet.text(items[next].value);
            ++next;
        } while (next < items.size() && size_bytes + encoded_size(items[next]) <= max_packet_bytes);
        packets.push_back(packet.take());
    }
    return packets;
}

status decode_entries(packet_reader &packet, std::vector<entry> &into) {
    while (!packet.at_end()) {
        entry item;
        item.owner = packet.number<std::uint32_t>();
        item.key = packet.text();
        item.value = packet.text();
        if (!packet.ok()) {
            return error(OMPX_ERR_SYSTEM, "malformed packet of key-value entries");
        }
        into.push_back(std::move(item));
    }
    return {};
}

} // namespace diomp::launch::local
