// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on device copies, one device per rank: in place where the processor loads and stores
// device memory, else by way of host memory.
#include "api/state.h"

#include <memory>

using namespace diomp;
using collective::request;
using sync::operation;

namespace {

/// A buffer of a collective on a device, as the processor sees it.
class host_view {
public:
    /// `pointer` may be null if the call does not use it here.
    static result<host_view> open(offload::devices &devices, const void *pointer, int device,
                                  std::size_t nbytes, bool is_read) {
        host_view view;
        if (pointer == nullptr || nbytes == 0) {
            view.address_ = static_cast<std::byte *>(const_cast<void *>(pointer));
            return view;
        }
        auto found = devices.find_own(pointer, device, nbytes);
        DIOMP_TRY(found);
        view.address_ = found.value().address;
        if (found.value().on != nullptr) {
            view.there_ = found.value();
            view.copy_ = std::make_unique<std::byte[]>(nbytes);
            view.address_ = view.copy_.get();
            if (is_read) {
                DIOMP_TRY(devices.copy_own(view.there_, view.address_, nbytes, false));
            }
        }
        return view;
    }
    /// Brings what the collective has written back to the device.
    status close(offload::devices &devices, std::size_t nbytes) {
        return copy_ == nullptr ? status{} : devices.copy_own(there_, address_, nbytes, true);
    }
    [[nodiscard]] std::byte *address() const { return address_; }

private:
    std::byte *address_ = nullptr;
    offload::end there_;
    std::unique_ptr<std::byte[]> copy_;
};

/// `asked` has device or mapped addresses.
int run(const char *function, const void *site, const request &asked, int device,
        ompx_group_t group) {
    return api::call(
        function, site,
        [&] {
            return fmt::format("dst={}, src={}, device={}, amount={}", fmt::ptr(asked.dst),
                               asked.src, device, asked.amount);
        },
        [&](runtime::runtime &running, api::account &counted) -> status {
            auto members = running.groups().find(group);
            DIOMP_TRY(members);
            std::size_t const size = asked.type == 0 ? 1 : ompx_type_size(asked.type);
            DIOMP_TRY(api::check_size(asked.amount));
            std::size_t const nbytes = asked.amount * size;
            bool const writes = asked.root < 0 || (asked.root == members.value()->self().value()) ==
                                                      (asked.what == operation::reduce);
            bool const in_place = asked.src == nullptr || asked.src == asked.dst;
            offload::devices &devices = running.devices();
            bool const uses_dst = asked.what == operation::bcast || writes;
            auto dst =
                host_view::open(devices, uses_dst ? asked.dst : nullptr, device, nbytes, in_place);
            DIOMP_TRY(dst);
            auto src = host_view::open(devices, in_place && uses_dst ? nullptr : asked.src, device,
                                       nbytes, true);
            DIOMP_TRY(src);
            request seen = asked;
            seen.dst = dst.value().address();
            seen.src = asked.src == nullptr   ? nullptr
                       : in_place && uses_dst ? dst.value().address()
                                              : src.value().address();
            counted = {"device", nbytes};
            DIOMP_TRY(running.collectives().run(*members.value(), seen));
            return writes ? dst.value().close(devices, nbytes) : status{};
        });
}

} // namespace

extern "C" {

int ompx_target_bcast(void *ptr, int device, size_t nbytes, int root, ompx_group_t group) noexcept {
    return run("ompx_target_bcast", DIOMP_SITE,
               {.what = operation::bcast, .dst = ptr, .amount = nbytes, .root = root}, device,
               group);
}

int ompx_target_reduce(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                       ompx_op_t op, int root, ompx_group_t group) noexcept {
    return run("ompx_target_reduce", DIOMP_SITE,
               {.what = operation::reduce,
                .dst = dst,
                .src = src,
                .amount = count,
                .type = type,
                .op = op,
                .root = root},
               device, group);
}

int ompx_target_allreduce(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                          ompx_op_t op, ompx_group_t group) noexcept {
    return run("ompx_target_allreduce", DIOMP_SITE,
               {.what = operation::allreduce,
                .dst = dst,
                .src = src,
                .amount = count,
                .type = type,
                .op = op},
               device, group);
}

} // extern "C"
