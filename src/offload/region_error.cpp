// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/region_error.h"

#include "base/constant_names.h"
#include "diomp.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace diomp::offload {
namespace {

/// A call's name, and a format of its arguments with the fields rank, a, b, c and d, and b_type,
/// b_cmp, c_op, c_cmp and kind for what has a name, or a sign.
struct call_text {
    const char *function;
    const char *arguments;
};

constexpr auto call_texts = std::to_array<call_text>({
    {"ompx_put", "rank={rank}, dst={a:#x}, src={b:#x}, nbytes={c}"},
    {"ompx_get", "dst={a:#x}, rank={rank}, src={b:#x}, nbytes={c}"},
    {"ompx_put_signal", "rank={rank}, dst={a:#x}, src={b:#x}, nbytes={c}, signal={d:#x}"},
    {"ompx_signal_wait", "signal={a:#x}, cmp={b_cmp}, value={c}"},
    {"ompx_signal_test", "signal={a:#x}, cmp={b_cmp}, value={c}"},
    {"ompx_wait_until", "variable={a:#x}, type={b_type}, cmp={c_cmp}, value={d}"},
    {"ompx_fence", ""},
    {"ompx_atomic_fetch", "rank={rank}, target={a:#x}, type={b_type}, op={c_op}"},
    {"ompx_atomic_compare_swap", "rank={rank}, target={a:#x}, type={b_type}"},
    {"ompx_team_put", "rank={rank}, dst={a:#x}, src={b:#x}, nbytes={c}"},
    {"ompx_team_get", "dst={a:#x}, rank={rank}, src={b:#x}, nbytes={c}"},
    {"ompx_team_put_signal", "rank={rank}, dst={a:#x}, src={b:#x}, nbytes={c}, signal={d:#x}"},
    {"ompx_event_wait", ""},
    {"ompx_barrier", "group={a:#x}"},
    {"ompx_waitRMA", "kind={kind}"},
});
static_assert(call_texts.size() == DIOMP_CALL_WAIT_RMA + 1);

/// What happened and what to do, for reasons that need nothing but the device's number.
struct reason_text {
    int reason;
    const char *what;
    const char *remedy;
};

constexpr auto reason_texts = std::to_array<reason_text>({
    {DIOMP_DEVICE_NULL, "a pointer is null",
     "check that the memory was allocated; only transfers of 0 bytes may have null pointers"},
    {DIOMP_DEVICE_SIZE, "the size is negative or overflows",
     "check the arithmetic that the size comes from"},
    {DIOMP_DEVICE_NOT_GLOBAL,
     "the remote address is neither in this rank's segment on the device nor in global host memory",
     "allocate it with ompx_target_alloc, or map it and pass the address that it has in the "
     "region"},
    {DIOMP_DEVICE_NOT_SYMMETRIC,
     "the remote address is in local or asymmetric memory of the device, or in none that is "
     "allocated, so it names no location on another rank",
     "in regions, put to symmetric or mapped memory"},
    {DIOMP_DEVICE_PAST_END, "the range exceeds the symmetric memory, or the segment",
     "check the size and the offset of the transfer"},
    {DIOMP_DEVICE_UNREACHABLE,
     "this device can neither load nor store that memory of the rank, or the rank has none there",
     "let all ranks allocate or map the memory before the region starts, and set "
     "DIOMP_DEVICE_CALLS "
     "to auto or ring; otherwise transfer it on the host"},
    {DIOMP_DEVICE_HOST_MEMORY,
     "the local address is global host memory, which the device cannot "
     "load or store",
     "use memory of the device"},
    {DIOMP_DEVICE_MISALIGNED, "an address is not aligned to the size of its type",
     "align signals to 8 bytes, and the targets of atomics and waits to their size"},
    {DIOMP_DEVICE_UNKNOWN_TYPE, "the call does not take this type",
     "use OMPX_INT32, UINT32, INT64 or UINT64; atomics also take FLOAT and DOUBLE, and waits take "
     "integers of 8 and 16 bits"},
    {DIOMP_DEVICE_UNKNOWN_OP, "the call does not take this operator for the type",
     "see ompx_atomic_fetch() and ompx_signal_op_t in diomp.h"},
    {DIOMP_DEVICE_NO_REPLY, "timed out: the proxy thread of this rank has not replied",
     "see whether the rank that the call names still serves messages; DIOMP_TIMEOUT sets the "
     "limit"},
    {DIOMP_DEVICE_GAVE_UP, "the job is broken, so the proxy thread's reply is not waited for",
     "see the messages of the other ranks"},
    {DIOMP_DEVICE_RING_BROKEN,
     "an earlier request of this region to the proxy thread has timed out, so no more are made",
     "see the earlier message; the next region that starts when none runs can make calls again"},
    {DIOMP_DEVICE_GROUP, "regions on this GPU have called the barriers of too many groups",
     "keep groups instead of creating them anew, or call the group's barrier on the host"},
    {DIOMP_DEVICE_KIND, "unknown kind of transfer",
     "combine OMPX_RMA_PUT, OMPX_RMA_GET, OMPX_RMA_ATOMIC"},
    {DIOMP_DEVICE_EVENT, "not an event of a call in a region on this device",
     "wait for events of the host on the host"},
    {DIOMP_DEVICE_UNKNOWN_CMP, "cmp is not a comparison", "pass one of OMPX_CMP_EQ .. LE"},
});

std::pair<std::string, std::string> explain(const diomp_device_error &at, int num_ranks) {
    switch (at.reason) {
    case DIOMP_DEVICE_RANK:
        return {fmt::format("rank {} is outside the world of {} rank{}", at.rank, num_ranks,
                            num_ranks == 1 ? "" : "s"),
                fmt::format("pass a rank from 0 to {}", num_ranks - 1)};
    case DIOMP_DEVICE_TIMED_OUT:
        if (at.call == DIOMP_CALL_BARRIER) {
            return {
                fmt::format("timed out in barrier {} of this device: no signal of rank {}, or of a "
                            "rank that it waits for",
                            at.arguments[1], at.rank),
                "see whether all ranks call the barrier in regions on this device, and whether "
                "these can run at the same time (docs/device-calls.md); DIOMP_TIMEOUT sets the "
                "limit"};
        }
        return {fmt::format("timed out; the variable was {}", at.seen),
                "see whether the rank that is to signal has started its region, and whether both "
                "regions can run at the same time (docs/device-calls.md); DIOMP_TIMEOUT sets the "
                "limit"};
    case DIOMP_DEVICE_JOB_BROKEN:
        return {fmt::format("the job is broken, so nothing more is waited for; the variable was {}",
                            at.seen),
                "see the messages of the other ranks"};
    default:
        break;
    }
    for (reason_text const &each : reason_texts) {
        if (each.reason == at.reason) {
            return {each.what, each.remedy};
        }
    }
    return {fmt::format("unknown reason {}", at.reason), ""};
}

/// The call and its arguments, with what went wrong.
region_error describe_call(const diomp_device_error &at, int device, const error &why) {
    auto const which = static_cast<std::size_t>(at.call);
    call_text text = which < call_texts.size() ? call_texts[which] : call_text{"unknown call", ""};
    if (at.call == DIOMP_CALL_BARRIER && at.arguments[0] == 0) {
        text = {"ompx_barrier", "group=world"};
    }
    auto const &word = at.arguments;
    return {text.function,
            fmt::format(fmt::runtime(text.arguments), fmt::arg("rank", at.rank),
                        fmt::arg("a", word[0]), fmt::arg("b", word[1]), fmt::arg("c", word[2]),
                        fmt::arg("d", word[3]),
                        fmt::arg("b_type", type_name(static_cast<ompx_type_t>(word[1]))),
                        fmt::arg("b_cmp", comparison_name(static_cast<ompx_cmp_t>(word[1]))),
                        fmt::arg("c_op", operator_name(static_cast<ompx_op_t>(word[2]))),
                        fmt::arg("c_cmp", comparison_name(static_cast<ompx_cmp_t>(word[2]))),
                        fmt::arg("kind", static_cast<int>(word[0]))),
            {why.code(), fmt::format("in a target region on device {}: {}", device, why.message()),
             why.remedy()}};
}

} // namespace

region_error describe_request_error(const diomp_request &what, int device, const error &why) {
    auto const &field = what.field;
    diomp_device_error at{};
    at.call = static_cast<std::int32_t>(what.call);
    at.rank = what.rank;
    at.arguments[0] = field[0];
    switch (what.operation % DIOMP_REQUEST_REPLY) {
    case DIOMP_REQUEST_PUT:
    case DIOMP_REQUEST_GET:
        at.arguments[1] = field[3];
        at.arguments[2] = field[4];
        break;
    case DIOMP_REQUEST_PUT_SIGNAL:
        at.arguments[1] = field[3];
        at.arguments[2] = field[4];
        at.arguments[3] = field[1];
        break;
    case DIOMP_REQUEST_FETCH:
        at.arguments[1] = what.detail & 0xff;
        at.arguments[2] = what.detail >> 8;
        break;
    case DIOMP_REQUEST_COMPARE_SWAP:
        at.arguments[1] = what.detail;
        break;
    case DIOMP_REQUEST_PUT_SIGNAL_INLINE:
        at.arguments[3] = field[1];
        [[fallthrough]];
    default:
        at.arguments[2] = what.detail & 0xff;
        break;
    }
    if (at.call == DIOMP_CALL_GET || at.call == DIOMP_CALL_TEAM_GET) {
        std::swap(at.arguments[0], at.arguments[1]);
    }
    return describe_call(at, device, why);
}

region_error describe_region_error(const diomp_device_error &at, int device, int num_ranks) {
    auto [what, remedy] = explain(at, num_ranks);
    return describe_call(at, device, {static_cast<ompx_status>(at.status), what, remedy});
}

} // namespace diomp::offload
