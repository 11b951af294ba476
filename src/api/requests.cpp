// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/requests.h"

#include <memory>

namespace diomp::api {
namespace {

collective::block_list copy_lists(const size_lists &from, std::size_t num) {
    collective::block_list made;
    made.nbytes.assign(from.nbytes, from.nbytes + num);
    if (from.offsets != nullptr) {
        made.offsets.assign(from.offsets, from.offsets + num);
        return made;
    }
    std::size_t at = 0;
    for (std::size_t const nbytes : made.nbytes) {
        made.offsets.push_back(at);
        at += nbytes; // what overflows is found by the check of the call
    }
    return made;
}

} // namespace

std::string describe(const collective::request &asked, ompx_group_t group) {
    std::string text = fmt::format("{}={}", asked.type == 0 ? "nbytes" : "count", asked.amount);
    if (asked.op != 0) {
        text += fmt::format(", type={}, op={}", sync::type_name(asked.type),
                            collective::user_operators::is_user_defined(asked.op)
                                ? "user-defined"
                                : sync::operator_name(asked.op));
    }
    if (asked.root >= 0) {
        text += fmt::format(", root={}", asked.root);
    }
    return text + (group == nullptr ? ", group=world" : fmt::format(", group={}", fmt::ptr(group)));
}

status read_lists(called &from, const group::group &members) {
    using sync::operation;
    operation const what = from.asked.what;
    if (!collective::has_block_lists(what)) {
        return {};
    }
    auto lists = std::make_shared<collective::block_lists>();
    if (what != operation::scatterv) {
        DIOMP_TRY(check_pointer(from.of_dst.nbytes,
                                what == operation::alltoallv ? "dst_nbytes" : "nbytes"));
        lists->dst = copy_lists(from.of_dst, members.count());
    }
    if (what == operation::scatterv || what == operation::alltoallv) {
        DIOMP_TRY(check_pointer(from.of_src.nbytes,
                                what == operation::alltoallv ? "src_nbytes" : "nbytes"));
        lists->src = copy_lists(from.of_src, members.count());
    }
    from.asked.blocks = std::move(lists);
    return {};
}

} // namespace diomp::api
