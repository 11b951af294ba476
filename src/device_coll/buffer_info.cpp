// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/buffer_info.h"

#include <algorithm>
#include <cstring>

namespace diomp::device_coll {
namespace {

void append(std::vector<std::byte> &to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
}

} // namespace

bool call_info::fits_stage_buffer(const group::group &members, const coll::request &args) {
    std::size_t const blocks = coll::has_block_lists(args.what) ? members.count() : 0;
    std::size_t const each = sizeof(buffer_info) + blocks * sizeof(block_info);
    return members.endpoints().max_per_member() * each <= group::stage_memory::small_bytes;
}

std::vector<std::byte> call_info::pack(std::span<const buffer_info> own,
                                       std::span<const coll::block_lists *const> lists) {
    std::vector<std::byte> packed;
    append(packed, std::as_bytes(own));
    for (const coll::block_lists *const each : lists) {
        const coll::block_list &used = each->src.nbytes.empty() ? each->dst : each->src;
        for (std::size_t member = 0; member < used.nbytes.size(); ++member) {
            std::size_t const nbytes = used.nbytes[member];
            // That of an empty block may have any value.
            block_info const info{nbytes, nbytes == 0 ? 0 : used.offsets[member]};
            append(packed, std::as_bytes(std::span(&info, 1)));
        }
    }
    return packed;
}

call_info::call_info(group::group &members, const coll::request &args) : all_(members.count()) {
    std::size_t const n = members.count();
    bool const has_blocks = coll::has_block_lists(args.what);
    blocks_.resize(has_blocks ? n * n : 0);
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
        auto const rank_members = members.endpoints().of(rank);
        const std::byte *from = members.local_members().stage_buffer_of(rank);
        for (std::uint32_t const member : rank_members) {
            std::memcpy(&all_[member], from, sizeof(buffer_info));
            from += sizeof(buffer_info);
        }
        for (std::size_t index = 0; has_blocks && index < rank_members.size(); ++index) {
            std::memcpy(&blocks_[rank_members[index] * n], from, n * sizeof(block_info));
            from += n * sizeof(block_info);
        }
    }
}

bool call_info::all_fit() const {
    return std::ranges::all_of(all_, [](const buffer_info &each) { return each.is_eligible != 0; });
}

std::size_t call_info::largest_block() const {
    return std::ranges::max(blocks_, {}, &block_info::nbytes).nbytes;
}

} // namespace diomp::device_coll
