// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/session_call.h"

#include "base/packet.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace diomp::device_coll {
namespace {

void append(packet_writer &to, const std::vector<std::size_t> &numbers) {
    to.number(std::uint64_t{numbers.size()});
    for (std::size_t const each : numbers) {
        to.number(std::uint64_t{each});
    }
}

template <typename Read>
auto read_list(packet_reader &from, std::size_t element_bytes, Read read) {
    std::vector<decltype(read())> made;
    auto const count = from.number<std::uint64_t>();
    if (count <= from.rest_size() / element_bytes) {
        made.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            made.push_back(read());
        }
    } else {
        static_cast<void>(from.rest());
        static_cast<void>(from.number<std::uint8_t>()); // no longer ok()
    }
    return made;
}

void append(packet_writer &to, const std::vector<int> &ranks) {
    to.number(std::uint64_t{ranks.size()});
    for (int const each : ranks) {
        to.number(static_cast<std::uint32_t>(each));
    }
}

std::vector<int> read_ranks(packet_reader &from) {
    return read_list(from, sizeof(std::uint32_t),
                     [&] { return static_cast<int>(from.number<std::uint32_t>()); });
}

coll::block_list read_blocks(packet_reader &from) {
    auto const number = [&] { return std::size_t{from.number<std::uint64_t>()}; };
    coll::block_list made;
    made.nbytes = read_list(from, sizeof(std::uint64_t), number);
    made.offsets = read_list(from, sizeof(std::uint64_t), number);
    return made;
}

bool is_collective(sync::operation what) {
    return (what >= sync::operation::none && what <= sync::operation::alltoall) ||
           (what >= sync::operation::gatherv && what <= sync::operation::exscan);
}

bool has_pairs(const coll::block_list &list) { return list.nbytes.size() == list.offsets.size(); }

} // namespace

std::string encode(const session_call &call) {
    coll::request const &args = call.args;
    packet_writer packet(args.what);
    packet.number(call.group);
    append(packet, call.ranks);
    packet.number(std::uint64_t{reinterpret_cast<std::uintptr_t>(args.dst)});
    packet.number(std::uint64_t{reinterpret_cast<std::uintptr_t>(args.src)});
    packet.number(std::uint64_t{args.amount});
    packet.number(static_cast<std::uint32_t>(args.type));
    packet.number(static_cast<std::uint32_t>(args.op));
    packet.number(static_cast<std::uint32_t>(args.root));
    if (args.blocks != nullptr) {
        for (coll::block_list const *each : {&args.blocks->dst, &args.blocks->src}) {
            append(packet, each->nbytes);
            append(packet, each->offsets);
        }
    }
    return packet.take();
}

result<session_call> decode_session_call(std::string_view bytes) {
    packet_reader packet(bytes);
    session_call call;
    coll::request &args = call.args;
    args.what = packet.type<sync::operation>();
    call.group = packet.number<std::uint64_t>();
    call.ranks = read_ranks(packet);
    args.dst = reinterpret_cast<void *>(packet.number<std::uint64_t>());
    args.src = reinterpret_cast<const void *>(packet.number<std::uint64_t>());
    args.amount = packet.number<std::uint64_t>();
    args.type = static_cast<ompx_type_t>(packet.number<std::uint32_t>());
    args.op = static_cast<ompx_op_t>(packet.number<std::uint32_t>());
    args.root = static_cast<int>(packet.number<std::uint32_t>());
    if (coll::has_block_lists(args.what)) {
        auto lists = std::make_shared<coll::block_lists>();
        lists->dst = read_blocks(packet);
        lists->src = read_blocks(packet);
        args.blocks = std::move(lists);
    }
    bool const has_whole_lists =
        args.blocks == nullptr || (has_pairs(args.blocks->dst) && has_pairs(args.blocks->src));
    if (!packet.ok() || !packet.at_end() || !is_collective(args.what) || !has_whole_lists) {
        return error(OMPX_ERR_ARG, "malformed collective call for a remote device");
    }
    return call;
}

std::string encode(const session_group &group) {
    packet_writer packet(sync::operation::group_create);
    packet.number(std::uint64_t{reinterpret_cast<std::uintptr_t>(group.handle)});
    packet.number(group.group);
    append(packet, group.ranks);
    return packet.take();
}

result<session_group> decode_session_group(std::string_view bytes) {
    packet_reader packet(bytes);
    session_group made;
    auto const what = packet.type<sync::operation>();
    made.handle = reinterpret_cast<ompx_group_t>(packet.number<std::uint64_t>());
    made.group = packet.number<std::uint64_t>();
    made.ranks = read_ranks(packet);
    if (!packet.ok() || !packet.at_end() || what != sync::operation::group_create) {
        return error(OMPX_ERR_ARG, "malformed group for a remote device");
    }
    return made;
}

} // namespace diomp::device_coll
