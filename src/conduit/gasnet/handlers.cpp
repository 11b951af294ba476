// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/handlers.h"

#include "conduit/gasnet/traffic.h"

#include <array>
#include <cstring>

namespace diomp::conduit::gasnet {
namespace {

traffic *g_traffic = nullptr;

world_rank source_of(gex_Token_t token) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return world_rank{static_cast<int>(info.gex_srcrank)};
}

// Handlers. They take leaf locks, write memory and answer; they call nothing else.

void on_put(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t address_high,
            gex_AM_Arg_t address_low, gex_AM_Arg_t epoch_high, gex_AM_Arg_t epoch_low) {
    std::memcpy(reinterpret_cast<void *>(join(address_high, address_low)), bytes, nbytes);
    g_traffic->heard(source_of(token));
    gex_AM_ReplyShort2(token, put_answer_handler, 0, epoch_high, epoch_low);
}

void on_put_answer(gex_Token_t token, gex_AM_Arg_t epoch_high, gex_AM_Arg_t epoch_low) {
    peer &from = g_traffic->heard(source_of(token));
    from.free_slot();
    from.end_put(reinterpret_cast<epoch *>(join(epoch_high, epoch_low)));
}

void on_get(gex_Token_t token, gex_AM_Arg_t address_high, gex_AM_Arg_t address_low,
            gex_AM_Arg_t nbytes, gex_AM_Arg_t index, gex_AM_Arg_t generation,
            gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low) {
    g_traffic->heard(source_of(token));
    gex_AM_ReplyMedium4(token, get_answer_handler,
                        reinterpret_cast<void *>(join(address_high, address_low)),
                        static_cast<std::uint32_t>(nbytes), GEX_EVENT_NOW, 0, index, generation,
                        offset_high, offset_low);
}

void on_get_answer(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t index,
                   gex_AM_Arg_t generation, gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low) {
    peer &from = g_traffic->heard(source_of(token));
    from.free_slot();
    from.take_piece({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(generation)},
                    join(offset_high, offset_low), bytes, nbytes);
}

void on_message(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t handler,
                gex_AM_Arg_t number) {
    world_rank const source = source_of(token);
    g_traffic->heard(source);
    g_traffic->queue(source, static_cast<handler_id>(handler), static_cast<std::uint32_t>(number),
                     bytes, nbytes);
    gex_AM_ReplyShort0(token, answer_handler, 0);
}

void on_bulk(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t handler,
             gex_AM_Arg_t payload_bytes) {
    world_rank const source = source_of(token);
    g_traffic->heard(source);
    auto const *const begin = static_cast<const std::byte *>(bytes);
    auto const head = static_cast<std::size_t>(payload_bytes);
    g_traffic->arrived().take_bulk(
        {source, static_cast<handler_id>(handler), {begin, head}, {begin + head, nbytes - head}});
    gex_AM_ReplyShort0(token, answer_handler, 0);
}

void on_answer(gex_Token_t token) {
    peer &from = g_traffic->heard(source_of(token));
    from.free_slot();
    from.unanswered_messages.fetch_sub(1, std::memory_order_release);
}

void take_credit(peer &from, gex_AM_Arg_t nbytes) {
    from.free_room(static_cast<std::uint32_t>(nbytes));
}

void on_credit(gex_Token_t token, gex_AM_Arg_t nbytes) {
    take_credit(g_traffic->heard(source_of(token)), nbytes);
    gex_AM_ReplyShort1(token, pong_handler, 0, 0);
}

void on_ping(gex_Token_t token) {
    peer &source = g_traffic->heard(source_of(token));
    auto const handled = static_cast<gex_AM_Arg_t>(source.take_handled());
    gex_AM_ReplyShort1(token, pong_handler, 0, handled);
}

void on_attend(gex_Token_t token) {
    g_traffic->heard(source_of(token));
    g_traffic->begin_attending();
    gex_AM_ReplyShort1(token, pong_handler, 0, 0);
}

void on_pong(gex_Token_t token, gex_AM_Arg_t nbytes) {
    peer &from = g_traffic->heard(source_of(token));
    from.free_slot();
    take_credit(from, nbytes);
}

template <typename Function>
gex_AM_Entry_t entry(gex_AM_Index_t index, Function *function, gex_Flags_t flags,
                     unsigned num_arguments, const char *name) {
    return {index, reinterpret_cast<gex_AM_Fn_t>(function), flags, num_arguments, nullptr, name};
}

} // namespace

void register_handlers(gex_EP_t endpoint, traffic &owner) {
    g_traffic = &owner;
    constexpr gex_Flags_t request = GEX_FLAG_AM_REQUEST;
    constexpr gex_Flags_t reply = GEX_FLAG_AM_REPLY;
    constexpr gex_Flags_t medium = GEX_FLAG_AM_MEDIUM;
    constexpr gex_Flags_t brief = GEX_FLAG_AM_SHORT;
    std::array table{
        entry(put_handler, on_put, medium | request, 4, "diomp put"),
        entry(put_answer_handler, on_put_answer, brief | reply, 2, "diomp put answer"),
        entry(get_handler, on_get, brief | request, 7, "diomp get"),
        entry(get_answer_handler, on_get_answer, medium | reply, 4, "diomp get answer"),
        entry(message_handler, on_message, medium | request, 2, "diomp message"),
        entry(bulk_handler, on_bulk, medium | request, 2, "diomp bulk"),
        entry(answer_handler, on_answer, brief | reply, 0, "diomp answer"),
        entry(credit_handler, on_credit, brief | request, 1, "diomp credit"),
        entry(ping_handler, on_ping, brief | request, 0, "diomp ping"),
        entry(pong_handler, on_pong, brief | reply, 1, "diomp pong"),
        entry(attend_handler, on_attend, brief | request, 0, "diomp attend"),
    };
    gex_EP_RegisterHandlers(endpoint, table.data(), table.size());
}

void forget_handlers() { g_traffic = nullptr; }

} // namespace diomp::conduit::gasnet
