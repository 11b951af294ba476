// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/handlers.h"

#include "transport/gasnet/iface.h"

#include <array>
#include <cstring>

namespace diomp::transport::gasnet {
namespace {

iface *g_iface = nullptr;

world_rank source_of(gex_Token_t token) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return world_rank{static_cast<int>(info.gex_srcrank)};
}

// Handlers. They take leaf locks, write memory and reply, and call nothing else.

void on_put(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t address_high,
            gex_AM_Arg_t address_low, gex_AM_Arg_t epoch_high, gex_AM_Arg_t epoch_low) {
    std::memcpy(reinterpret_cast<void *>(join(address_high, address_low)), bytes, nbytes);
    g_iface->note_arrival(source_of(token));
    gex_AM_ReplyShort2(token, put_ack_handler, 0, epoch_high, epoch_low);
}

void on_put_ack(gex_Token_t token, gex_AM_Arg_t epoch_high, gex_AM_Arg_t epoch_low) {
    peer &from = g_iface->note_arrival(source_of(token));
    from.free_slot();
    from.end_put(reinterpret_cast<epoch *>(join(epoch_high, epoch_low)));
}

void on_get(gex_Token_t token, gex_AM_Arg_t address_high, gex_AM_Arg_t address_low,
            gex_AM_Arg_t nbytes, gex_AM_Arg_t index, gex_AM_Arg_t generation,
            gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low) {
    g_iface->note_arrival(source_of(token));
    gex_AM_ReplyMedium4(token, get_reply_handler,
                        reinterpret_cast<void *>(join(address_high, address_low)),
                        static_cast<std::uint32_t>(nbytes), GEX_EVENT_NOW, 0, index, generation,
                        offset_high, offset_low);
}

void on_get_reply(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t index,
                  gex_AM_Arg_t generation, gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low) {
    peer &from = g_iface->note_arrival(source_of(token));
    from.free_slot();
    from.store_chunk({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(generation)},
                     join(offset_high, offset_low), bytes, nbytes);
}

void on_message(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t handler,
                gex_AM_Arg_t number) {
    world_rank const source = source_of(token);
    g_iface->note_arrival(source);
    g_iface->queue(source, static_cast<handler_id>(handler), static_cast<std::uint32_t>(number),
                   bytes, nbytes);
    gex_AM_ReplyShort0(token, ack_handler, 0);
}

void on_long(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t handler,
             gex_AM_Arg_t payload_bytes) {
    world_rank const source = source_of(token);
    g_iface->note_arrival(source);
    auto const *const begin = static_cast<const std::byte *>(bytes);
    auto const head = static_cast<std::size_t>(payload_bytes);
    g_iface->arrived().handle_long(
        {source, static_cast<handler_id>(handler), {begin, head}, {begin + head, nbytes - head}});
    gex_AM_ReplyShort0(token, ack_handler, 0);
}

void on_ack(gex_Token_t token) {
    peer &from = g_iface->note_arrival(source_of(token));
    from.free_slot();
    from.unacknowledged_messages.fetch_sub(1, std::memory_order_release);
}

void take_credit(peer &from, gex_AM_Arg_t nbytes) {
    from.return_credit(static_cast<std::uint32_t>(nbytes));
}

void on_credit(gex_Token_t token, gex_AM_Arg_t nbytes) {
    take_credit(g_iface->note_arrival(source_of(token)), nbytes);
    gex_AM_ReplyShort1(token, pong_handler, 0, 0);
}

void on_ping(gex_Token_t token) {
    peer &source = g_iface->note_arrival(source_of(token));
    auto const handled = static_cast<gex_AM_Arg_t>(source.take_handled_bytes());
    gex_AM_ReplyShort1(token, pong_handler, 0, handled);
}

void on_poll_request(gex_Token_t token) {
    g_iface->note_arrival(source_of(token));
    g_iface->keep_polling();
    gex_AM_ReplyShort1(token, pong_handler, 0, 0);
}

void on_pong(gex_Token_t token, gex_AM_Arg_t nbytes) {
    peer &from = g_iface->note_arrival(source_of(token));
    from.free_slot();
    take_credit(from, nbytes);
}

template <typename Function>
gex_AM_Entry_t entry(gex_AM_Index_t index, Function *function, gex_Flags_t flags,
                     unsigned num_arguments, const char *name) {
    return {index, reinterpret_cast<gex_AM_Fn_t>(function), flags, num_arguments, nullptr, name};
}

} // namespace

void register_handlers(gex_EP_t endpoint, iface &owner) {
    g_iface = &owner;
    constexpr gex_Flags_t request = GEX_FLAG_AM_REQUEST;
    constexpr gex_Flags_t reply = GEX_FLAG_AM_REPLY;
    constexpr gex_Flags_t am_medium = GEX_FLAG_AM_MEDIUM;
    constexpr gex_Flags_t am_short = GEX_FLAG_AM_SHORT;
    std::array table{
        entry(put_handler, on_put, am_medium | request, 4, "diomp put"),
        entry(put_ack_handler, on_put_ack, am_short | reply, 2, "diomp put ack"),
        entry(get_handler, on_get, am_short | request, 7, "diomp get"),
        entry(get_reply_handler, on_get_reply, am_medium | reply, 4, "diomp get reply"),
        entry(message_request_handler, on_message, am_medium | request, 2, "diomp message"),
        entry(long_handler, on_long, am_medium | request, 2, "diomp long message"),
        entry(ack_handler, on_ack, am_short | reply, 0, "diomp ack"),
        entry(credit_handler, on_credit, am_short | request, 1, "diomp credit"),
        entry(ping_handler, on_ping, am_short | request, 0, "diomp ping"),
        entry(pong_handler, on_pong, am_short | reply, 1, "diomp pong"),
        entry(poll_request_handler, on_poll_request, am_short | request, 0, "diomp poll request"),
    };
    gex_EP_RegisterHandlers(endpoint, table.data(), table.size());
}

void unregister_handlers() { g_iface = nullptr; }

} // namespace diomp::transport::gasnet
