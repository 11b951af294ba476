// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/requests.h"

#include "base/constant_names.h"
#include "group/group.h"

#include <memory>

namespace diomp::api {
namespace {

coll::block_list copy_lists(const size_lists &from, std::size_t num) {
    coll::block_list made;
    made.nbytes.assign(from.nbytes, from.nbytes + num);
    if (from.offsets != nullptr) {
        made.offsets.assign(from.offsets, from.offsets + num);
        return made;
    }
    std::size_t at = 0;
    for (std::size_t const nbytes : made.nbytes) {
        made.offsets.push_back(at);
        at += nbytes; // the call's check finds overflows
    }
    return made;
}

} // namespace

std::string describe(const coll::request &args, ompx_group_t group) {
    std::string text = fmt::format("{}={}", args.type == 0 ? "nbytes" : "count", args.amount);
    if (args.op != 0) {
        text +=
            fmt::format(", type={}, op={}", type_name(args.type),
                        coll::user_operators::is_user_defined(args.op) ? "user-defined"
                                                                       : operator_name(args.op));
    }
    if (args.root >= 0) {
        text += fmt::format(", root={}", args.root);
    }
    return text + (group == nullptr ? ", group=world" : fmt::format(", group={}", fmt::ptr(group)));
}

status read_lists(list_call &from, const group::group &members) {
    using sync::operation;
    operation const what = from.args.what;
    if (!coll::has_block_lists(what)) {
        return {};
    }
    auto lists = std::make_shared<coll::block_lists>();
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
    from.args.blocks = std::move(lists);
    return {};
}

} // namespace diomp::api
