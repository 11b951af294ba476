// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/session_transfer.h"

#include "base/packet.h"

namespace diomp::offload {
namespace {

/// The type of the packet: no operation of sync::operation, with which the other calls begin.
enum class call_type : std::uint8_t { transfer = 0xff };

constexpr std::size_t run_bytes = 3 * sizeof(std::uint64_t);

} // namespace

std::string encode(const session_transfer &of) {
    packet_writer packet(call_type::transfer);
    packet.number(static_cast<std::uint8_t>(of.dir == rma::direction::put ? 1 : 0));
    packet.number(static_cast<std::uint32_t>(of.rank));
    packet.number(of.remote);
    packet.number(of.local);
    packet.number(std::uint64_t{of.runs.size()});
    for (rma::run const &each : of.runs) {
        packet.number(std::uint64_t{each.remote});
        packet.number(std::uint64_t{each.local});
        packet.number(std::uint64_t{each.nbytes});
    }
    return packet.take();
}

bool is_session_transfer(std::string_view call) {
    return packet_reader(call).type<call_type>() == call_type::transfer;
}

result<session_transfer> decode_session_transfer(std::string_view bytes) {
    packet_reader packet(bytes);
    session_transfer made;
    bool const is_transfer = packet.type<call_type>() == call_type::transfer;
    made.dir = packet.number<std::uint8_t>() != 0 ? rma::direction::put : rma::direction::get;
    made.rank = static_cast<std::int32_t>(packet.number<std::uint32_t>());
    made.remote = packet.number<std::uint64_t>();
    made.local = packet.number<std::uint64_t>();
    auto const count = packet.number<std::uint64_t>();
    bool is_whole = count == packet.rest_size() / run_bytes;
    for (std::uint64_t i = 0; is_whole && i < count; ++i) {
        rma::run &each = made.runs.emplace_back();
        each.remote = packet.number<std::uint64_t>();
        each.local = packet.number<std::uint64_t>();
        each.nbytes = packet.number<std::uint64_t>();
        std::size_t end = 0;
        is_whole = !__builtin_add_overflow(each.remote, each.nbytes, &end) &&
                   !__builtin_add_overflow(each.local, each.nbytes, &end);
    }
    if (!packet.ok() || !packet.at_end() || !is_transfer || !is_whole) {
        return error(OMPX_ERR_ARG, "malformed transfer for a remote device");
    }
    return made;
}

} // namespace diomp::offload
