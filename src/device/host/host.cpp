// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/host.h"

#include "base/sizes.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <functional>

namespace diomp::device::host {
namespace {

class host_memory final : public memory {
public:
    host_memory(std::shared_ptr<host_backend::slot> of, std::size_t reserved_bytes)
        : of_(std::move(of)), reserved_bytes_(reserved_bytes) {}
    ~host_memory() override {
        of_->committed_bytes = 0;
        of_->reserved = false;
    }

    [[nodiscard]] std::byte *base() const override {
        return static_cast<std::byte *>(of_->range.base);
    }
    [[nodiscard]] std::size_t reserved_bytes() const override { return reserved_bytes_; }
    [[nodiscard]] std::size_t committed_bytes() const override { return of_->committed_bytes; }

    status commit(std::size_t offset_bytes, std::size_t nbytes) override {
        if (nbytes > reserved_bytes_ || offset_bytes > reserved_bytes_ - nbytes) {
            return out_of_range(*this, offset_bytes, nbytes);
        }
        if (offset_bytes + nbytes > of_->committed_bytes) {
            of_->committed_bytes = offset_bytes + nbytes;
        }
        return {};
    }

    [[nodiscard]] std::size_t num_extents() const override { return 1; }

    result<shared_handle> share(std::size_t /*num_known*/, std::size_t /*max_extents*/) override {
        return error(OMPX_ERR_UNSUPPORTED,
                     "memory of the host backend is mapped in every process already");
    }

private:
    std::shared_ptr<host_backend::slot> of_;
    std::size_t reserved_bytes_;
};

class host_queue final : public queue {
public:
    status copy(void *dst, const void *src, std::size_t nbytes) override {
        if (nbytes > 0) {
            std::memmove(dst, src, nbytes);
        }
        return {};
    }
    result<bool> is_idle() override { return true; }
    status wait() override { return {}; }
};

} // namespace

host_backend::host_backend(std::span<const host_range> ranges) {
    for (host_range const &range : ranges) {
        auto made = std::make_shared<slot>();
        made->range = range;
        slots_.push_back(std::move(made));
    }
}

result<properties> host_backend::describe(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    slot const &of = *slots_[device.index()];
    properties found;
    found.name = fmt::format("host memory {}", device.value());
    found.total_bytes = of.range.reserved_bytes;
    found.free_bytes = of.range.reserved_bytes - of.committed_bytes;
    found.memory_grows = true;
    found.host_loadable = true;
    return found;
}

result<device_uuid> host_backend::uuid_of(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return device_uuid{};
}

result<std::unique_ptr<memory>> host_backend::reserve_at(device_id device, std::size_t max_bytes,
                                                         std::uint64_t /*preferred*/) {
    DIOMP_TRY(check_device(*this, device));
    auto const &of = slots_[device.index()];
    if (max_bytes > of->range.reserved_bytes) {
        return error(OMPX_ERR_NOMEM, fmt::format("cannot reserve {} on host device {}: it has {}",
                                                 format_size(max_bytes), device.value(),
                                                 format_size(of->range.reserved_bytes)));
    }
    if (of->reserved.exchange(true)) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("host device {} is reserved already", device.value()));
    }
    return std::unique_ptr<memory>(std::make_unique<host_memory>(of, max_bytes));
}

result<std::unique_ptr<peer_memory>> host_backend::open_shared(device_id device,
                                                               const shared_handle & /*handle*/) {
    DIOMP_TRY(check_device(*this, device));
    return error(OMPX_ERR_UNSUPPORTED,
                 "memory of the host backend is mapped in every process already");
}

result<bool> host_backend::can_access(device_id device, device_id other) {
    DIOMP_TRY(check_device(*this, device));
    DIOMP_TRY(check_device(*this, other));
    return true;
}

result<std::unique_ptr<queue>> host_backend::make_queue(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return std::unique_ptr<queue>(std::make_unique<host_queue>());
}

result<pinned_memory> host_backend::allocate_pinned(std::size_t nbytes) {
    void *const base = std::malloc(nbytes == 0 ? 1 : nbytes);
    if (base == nullptr) {
        return error(OMPX_ERR_NOMEM, fmt::format("no {} of host memory", format_size(nbytes)));
    }
    return pinned_memory(base, nbytes, [](void *address) { std::free(address); });
}

result<pinned_memory> host_backend::pin(void *base, std::size_t nbytes) {
    return pinned_memory(base, nbytes, [](void * /*address*/) {});
}

std::optional<device_id> host_backend::owner_of(const void *address) {
    auto const *const wanted = static_cast<const std::byte *>(address);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        auto const *const base = static_cast<const std::byte *>(slots_[i]->range.base);
        // std::less, since the addresses need not belong to one object
        if (!std::less<>()(wanted, base) &&
            std::less<>()(wanted, base + slots_[i]->range.reserved_bytes)) {
            return device_id(static_cast<int>(i));
        }
    }
    return {};
}

} // namespace diomp::device::host

namespace diomp::device {

result<std::unique_ptr<backend>> create_host(const std::vector<host_range> &ranges) {
    if (ranges.empty()) {
        return error(OMPX_ERR_ARG, "the host backend needs a range of memory for each device");
    }
    for (host_range const &range : ranges) {
        if (range.base == nullptr || range.reserved_bytes == 0) {
            return error(OMPX_ERR_ARG, "the host backend was given a range without memory");
        }
    }
    return std::unique_ptr<backend>(std::make_unique<host::host_backend>(ranges));
}

} // namespace diomp::device
