// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/told_buffers.h"

#include <algorithm>
#include <cstring>

namespace diomp::runtime {
namespace {

void append(std::vector<std::byte> &to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

} // namespace

bool told_call::has_room(const group::group &members, const collective::request &asked) {
    std::size_t const blocks = collective::has_block_lists(asked.what) ? members.count() : 0;
    std::size_t const each = sizeof(told_buffers) + blocks * sizeof(told_block);
    return members.endpoints().most_per_member() * each <= group::member_block::small_stage_bytes;
}

std::vector<std::byte> told_call::pack(std::span<const told_buffers> own,
                                       std::span<const collective::block_lists *const> lists) {
    std::vector<std::byte> packed;
    append(packed, std::as_bytes(own));
    for (const collective::block_lists *const each : lists) {
        const collective::block_list &used = each->src.nbytes.empty() ? each->dst : each->src;
        for (std::size_t member = 0; member < used.nbytes.size(); ++member) {
            told_block const told{used.nbytes[member], used.offsets[member]};
            append(packed, std::as_bytes(std::span(&told, 1)));
        }
    }
    return packed;
}

told_call::told_call(group::group &members, const collective::request &asked)
    : all_(members.count()) {
    std::size_t const n = members.count();
    bool const has_blocks = collective::has_block_lists(asked.what);
    blocks_.resize(has_blocks ? n * n : 0);
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        auto const places = members.endpoints().of(rank);
        const std::byte *from = members.here().stage_of(rank);
        for (std::uint32_t const member : places) {
            std::memcpy(&all_[member], from, sizeof(told_buffers));
            from += sizeof(told_buffers);
        }
        for (std::size_t place = 0; has_blocks && place < places.size(); ++place) {
            std::memcpy(&blocks_[places[place] * n], from, n * sizeof(told_block));
            from += n * sizeof(told_block);
        }
    }
}

bool told_call::all_fit() const {
    return std::ranges::all_of(all_, [](const told_buffers &each) { return each.is_fit != 0; });
}

std::size_t told_call::largest_block() const {
    return std::ranges::max(blocks_, {}, &told_block::nbytes).nbytes;
}

} // namespace diomp::runtime
