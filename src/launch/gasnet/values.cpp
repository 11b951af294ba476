// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gasnet/values.h"

#include "launch/fence_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sched.h>

namespace diomp::launch::gasnet {
namespace {

values *g_values = nullptr;
constexpr gex_AM_Index_t chunk_handler = first_launch_handler;

void on_chunk(gex_Token_t token, void *bytes, std::size_t nbytes, gex_AM_Arg_t number,
              gex_AM_Arg_t offset, gex_AM_Arg_t total) {
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    g_values->receive_chunk(info.gex_srcrank, static_cast<std::uint32_t>(number),
                            static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(total),
                            {static_cast<const std::byte *>(bytes), nbytes});
}

void append(std::string &packed, std::string_view text) {
    auto const size = static_cast<std::uint32_t>(text.size());
    packed.append(reinterpret_cast<const char *>(&size), sizeof(size));
    packed.append(text);
}

std::string_view take_text(std::string_view &packed) {
    std::uint32_t size = 0;
    std::memcpy(&size, packed.data(), sizeof(size));
    std::string_view const text = packed.substr(sizeof(size), size);
    packed.remove_prefix(sizeof(size) + size);
    return text;
}

} // namespace

values::values(const gasnet_client &job)
    : job_(job), rank_(gex_TM_QueryRank(job.team)), size_(gex_TM_QuerySize(job.team)),
      limits_(fence_limits::from([](const char *name) { return std::getenv(name); })),
      known_(size_) {
    g_values = this;
    gex_AM_Entry_t table[] = {{chunk_handler, reinterpret_cast<gex_AM_Fn_t>(&on_chunk),
                               GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 3, nullptr,
                               "diomp values"}};
    gex_EP_RegisterHandlers(job.endpoint, table, std::size(table));
}

values::~values() { g_values = nullptr; }

status values::put(std::string_view key, std::string_view value) {
    std::lock_guard const guard(mutex_);
    append(unpublished_, key);
    append(unpublished_, value);
    return {};
}

result<std::string> values::get(world_rank owner, std::string_view key) {
    std::lock_guard const guard(mutex_);
    if (owner.index() < known_.size()) {
        auto const found = known_[owner.index()].find(key);
        if (found != known_[owner.index()].end()) {
            return found->second;
        }
    }
    return error(OMPX_ERR_STATE, fmt::format("rank {} has published no '{}'", owner.value(), key));
}

void values::receive_chunk(gex_Rank_t source, std::uint32_t number, std::size_t offset,
                           std::size_t total, std::span<const std::byte> chunk) {
    std::lock_guard const guard(mutex_);
    contributions &all = incoming_.try_emplace(number, size_).first->second;
    contribution &from = all[source];
    from.bytes.resize(total);
    std::ranges::copy(chunk, reinterpret_cast<std::byte *>(from.bytes.data()) + offset);
    from.received += chunk.size();
    if (from.received == total && !from.is_complete) {
        from.is_complete = true;
        if (number == number_) {
            ++num_complete_;
        }
    }
}

void values::send(gex_Rank_t peer, std::uint32_t number, const std::string &bytes) const {
    std::size_t const max_chunk_bytes = gex_AM_LUBRequestMedium();
    std::size_t offset = 0;
    do {
        std::size_t const chunk = std::min(max_chunk_bytes, bytes.size() - offset);
        gex_AM_RequestMedium3(job_.team, peer, chunk_handler,
                              const_cast<char *>(bytes.data()) + offset, chunk, GEX_EVENT_NOW, 0,
                              static_cast<gex_AM_Arg_t>(number), static_cast<gex_AM_Arg_t>(offset),
                              static_cast<gex_AM_Arg_t>(bytes.size()));
        offset += chunk;
    } while (offset < bytes.size());
}

void values::unpack(gex_Rank_t owner, std::string_view bytes) {
    while (!bytes.empty()) {
        std::string_view const key = take_text(bytes);
        known_[owner].insert_or_assign(std::string(key), std::string(take_text(bytes)));
    }
}

status values::fence() {
    std::string own;
    {
        std::lock_guard const guard(mutex_);
        ++number_;
        own.swap(unpublished_);
        contributions &all = incoming_.try_emplace(number_, size_).first->second;
        num_complete_ =
            static_cast<gex_Rank_t>(std::ranges::count_if(all, &contribution::is_complete));
    }
    for (gex_Rank_t step = 1; step < size_; ++step) {
        send((rank_ + step) % size_, number_, own);
    }
    fence_wait waiting(limits_);
    for (unsigned round = 1; num_complete_ < size_ - 1; ++round) {
        gasnet_AMPoll();
        ::sched_yield();
        if (constexpr unsigned rounds_per_check = 1024; round % rounds_per_check == 0) {
            DIOMP_TRY(waiting.check());
        }
    }
    std::lock_guard const guard(mutex_);
    unpack(rank_, own);
    contributions const all = std::move(incoming_.extract(number_).mapped());
    for (gex_Rank_t owner = 0; owner < size_; ++owner) {
        unpack(owner, all[owner].bytes);
    }
    return {};
}

} // namespace diomp::launch::gasnet
