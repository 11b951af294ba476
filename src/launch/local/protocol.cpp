// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/local/protocol.h"

#include <fmt/format.h>

namespace diomp::launch::local {

std::size_t encoded_size(const entry &item) {
    return 3 * sizeof(std::uint32_t) + item.key.size() + item.value.size();
}

std::string encode_welcome(const welcome_packet &welcome) {
    packet_writer packet(packet_type::welcome);
    packet.number(protocol_magic);
    packet.number(welcome.version);
    packet.number(welcome.rank);
    packet.number(welcome.size);
    packet.number(welcome.node_first);
    packet.number(welcome.node_size);
    packet.text(welcome.job_id);
    packet.text(welcome.host);
    return packet.take();
}

result<welcome_packet> decode_welcome(std::string_view bytes) {
    packet_reader packet(bytes);
    if (packet.type<packet_type>() != packet_type::welcome ||
        packet.number<std::uint64_t>() != protocol_magic) {
        return error(OMPX_ERR_SYSTEM, "the socket does not speak diomp-run's protocol");
    }
    welcome_packet welcome;
    // The version comes before everything that may change with it.
    welcome.version = packet.number<std::uint32_t>();
    if (welcome.version != protocol_version) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("diomp-run speaks protocol version {}, this libdiomp version {}",
                                 welcome.version, protocol_version),
                     "use diomp-run and libdiomp of the same installation");
    }
    welcome.rank = packet.number<std::uint32_t>();
    welcome.size = packet.number<std::uint32_t>();
    welcome.node_first = packet.number<std::uint32_t>();
    welcome.node_size = packet.number<std::uint32_t>();
    welcome.job_id = packet.text();
    welcome.host = packet.text();
    bool const in_world = welcome.rank < welcome.size && welcome.node_first <= welcome.rank &&
                          welcome.rank - welcome.node_first < welcome.node_size &&
                          welcome.node_size <= welcome.size - welcome.node_first;
    if (!packet.ok() || !in_world) {
        return error(OMPX_ERR_SYSTEM, "diomp-run's first packet is malformed");
    }
    return welcome;
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
