// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/memory.h"

#include "device/cuda/mapping.h"
#include "device/cuda/plain_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace diomp::device::cuda {
namespace {

std::size_t round_up(std::size_t size_bytes, std::size_t granularity) {
    return (size_bytes + granularity - 1) / granularity * granularity;
}

std::byte *pointer(address base) { return reinterpret_cast<std::byte *>(base); }

/// A growing reservation. Mappings must be destroyed before the range that contains them.
class mapped_reservation final : public memory, public mapped_memory {
public:
    mapped_reservation(std::shared_ptr<context> on, memory_capabilities can,
                       allocation_properties kind, address_range range, std::size_t granularity)
        : on_(std::move(on)), can_(can), kind_(kind), granularity_(granularity),
          range_(std::make_unique<address_range>(std::move(range))) {}
    ~mapped_reservation() override {
        on_->remove_mapped(*this);
        auto const scope = context::current::enter(*on_);
        mappings_.clear();
        range_.reset();
    }

    [[nodiscard]] std::byte *base() const override { return pointer(range_->base()); }
    [[nodiscard]] std::size_t reserved_bytes() const override { return range_->size_bytes(); }
    [[nodiscard]] std::size_t committed_bytes() const override {
        return committed_.load(std::memory_order_relaxed);
    }

    status commit(std::size_t offset_bytes, std::size_t nbytes) override {
        if (nbytes > reserved_bytes() || offset_bytes > reserved_bytes() - nbytes) {
            return out_of_range(*this, offset_bytes, nbytes);
        }
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        std::size_t const end = round_up(offset_bytes + nbytes, granularity_);
        for (std::size_t begin = offset_bytes / granularity_ * granularity_; begin < end;) {
            extent const next = first_committed(begin, end);
            if (next.begin > begin) {
                DIOMP_TRY(add(begin, next.begin - begin));
            }
            begin = next.end;
        }
        return {};
    }

    [[nodiscard]] std::size_t num_extents() const override { return mappings_.size(); }

    result<shared_handle> share(std::size_t num_known, std::size_t max_extents) override {
        if (!can_.exports_descriptors) {
            return error(
                OMPX_ERR_UNSUPPORTED,
                fmt::format("CUDA device {} does not export memory as descriptors", on_->device()));
        }
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        shared_handle shared;
        shared.reserved_bytes = reserved_bytes();
        for (std::size_t i = num_known; i < mappings_.size() && i - num_known < max_extents; ++i) {
            physical_memory const &each = mappings_[i];
            int fd = -1;
            DIOMP_TRY(check(on_->driver(),
                            on_->driver().mem_export(&fd, each.physical(), handle_descriptor, 0),
                            "cuMemExportToShareableHandle"));
            shared.extents.push_back({.offset_bytes = each.base() - range_->base(),
                                      .size_bytes = each.size_bytes(),
                                      .fd = unique_fd(fd)});
        }
        return shared;
    }

    status grant_access(ordinal device) override {
        for (physical_memory &each : mappings_) {
            DIOMP_TRY(each.grant_access({&device, 1}));
        }
        return {};
    }

private:
    struct extent {
        std::size_t begin;
        std::size_t end;
    };
    /// The first mapping in [begin, end), or {end, end}.
    [[nodiscard]] extent first_committed(std::size_t begin, std::size_t end) const {
        extent first{end, end};
        for (physical_memory const &each : mappings_) {
            std::size_t const at = each.base() - range_->base();
            if (at < first.begin && at + each.size_bytes() > begin) {
                first = {at, at + each.size_bytes()};
            }
        }
        return first;
    }
    status add(std::size_t offset_bytes, std::size_t nbytes) {
        auto made = physical_memory::create(on_->driver(), nbytes, kind_);
        DIOMP_TRY(made);
        return on_->map_for_readers(*this, [&](std::span<const ordinal> readers) -> status {
            physical_memory added = made.take();
            DIOMP_TRY(added.map(range_->base() + offset_bytes));
            DIOMP_TRY(added.grant_access(readers));
            committed_.fetch_add(nbytes, std::memory_order_relaxed);
            mappings_.push_back(std::move(added));
            return {};
        });
    }

    std::shared_ptr<context> on_;
    memory_capabilities const can_;
    allocation_properties const kind_;
    std::size_t const granularity_;
    std::unique_ptr<address_range> range_;
    std::vector<physical_memory> mappings_; ///< changed under the context's mutex
    std::atomic<std::size_t> committed_{0};
};

/// A reservation of another process. Only the device that has opened it can access it.
class mapped_peer final : public peer_memory {
public:
    mapped_peer(std::shared_ptr<context> on, address_range range)
        : on_(std::move(on)), range_(std::make_unique<address_range>(std::move(range))) {}
    ~mapped_peer() override {
        auto const scope = context::current::enter(*on_);
        mappings_.clear();
        range_.reset();
    }

    [[nodiscard]] std::byte *base() const override { return pointer(range_->base()); }
    [[nodiscard]] std::size_t mapped_bytes() const override { return mapped_; }

    status map_more(const shared_handle &added) override {
        auto scope = context::current::enter(*on_);
        DIOMP_TRY(scope);
        std::vector<physical_memory> new_mappings; // all extents or none
        for (shared_extent const &extent : added.extents) {
            if (overlaps(mappings_, extent) || overlaps(new_mappings, extent) ||
                !extent.fd.valid() || extent.size_bytes > range_->size_bytes() ||
                extent.offset_bytes > range_->size_bytes() - extent.size_bytes) {
                return error(OMPX_ERR_ARG,
                             fmt::format("a shared extent of {} at {} overlaps a mapping, or "
                                         "does not fit into the {} of the reservation",
                                         extent.size_bytes, extent.offset_bytes,
                                         range_->size_bytes()));
            }
            auto imported =
                physical_memory::import(on_->driver(), extent.fd.get(), extent.size_bytes);
            DIOMP_TRY(imported);
            ordinal const device = on_->device();
            DIOMP_TRY(imported.value().map(range_->base() + extent.offset_bytes));
            DIOMP_TRY(imported.value().grant_access({&device, 1}));
            new_mappings.push_back(imported.take());
        }
        for (physical_memory &each : new_mappings) {
            mapped_ += each.size_bytes();
            mappings_.push_back(std::move(each));
        }
        return {};
    }

private:
    [[nodiscard]] bool overlaps(const std::vector<physical_memory> &mapped,
                                const shared_extent &extent) const {
        return std::ranges::any_of(mapped, [&](const physical_memory &each) {
            std::uint64_t const at = each.base() - range_->base();
            return extent.offset_bytes < at + each.size_bytes() &&
                   at < extent.offset_bytes + extent.size_bytes;
        });
    }

    std::shared_ptr<context> on_;
    std::unique_ptr<address_range> range_;
    std::vector<physical_memory> mappings_;
    std::size_t mapped_ = 0;
};

allocation_properties kind_of(ordinal device, memory_capabilities can) {
    allocation_properties kind;
    kind.where.id = device;
    kind.requested_handle_types = can.exports_descriptors ? handle_descriptor : handle_none;
    kind.rdma_capable = can.allows_rdma ? 1 : 0;
    return kind;
}

/// The unit of sizes and offsets.
result<std::size_t> granularity_of(const library &driver, const allocation_properties &kind) {
    std::size_t granularity = 0;
    DIOMP_TRY(check(driver, driver.mem_granularity(&granularity, &kind, granularity_recommended),
                    "cuMemGetAllocationGranularity"));
    return granularity;
}

} // namespace

result<memory_capabilities> memory_capabilities_of(const library &driver, ordinal device) {
    memory_capabilities found;
    auto const query = [&](int which, bool &into) {
        int value = 0;
        status outcome = check(driver, driver.device_get_attribute(&value, which, device),
                               "cuDeviceGetAttribute");
        into = value != 0;
        return outcome;
    };
    DIOMP_TRY(query(virtual_memory_supported, found.has_virtual_memory));
    DIOMP_TRY(query(descriptor_handles_supported, found.exports_descriptors));
    DIOMP_TRY(query(rdma_with_virtual_memory_supported, found.allows_rdma));
    return found;
}

result<std::unique_ptr<memory>> reserve(const std::shared_ptr<context> &on, memory_capabilities can,
                                        std::size_t max_bytes, address preferred) {
    auto scope = context::current::enter(*on);
    DIOMP_TRY(scope);
    if (!can.has_virtual_memory) {
        return allocate_plain(on, max_bytes);
    }
    allocation_properties const kind = kind_of(on->device(), can);
    auto granularity = granularity_of(on->driver(), kind);
    DIOMP_TRY(granularity);
    auto range = address_range::reserve(on->driver(), round_up(max_bytes, granularity.value()),
                                        granularity.value(), preferred);
    DIOMP_TRY(range);
    return std::unique_ptr<memory>(
        std::make_unique<mapped_reservation>(on, can, kind, range.take(), granularity.value()));
}

result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<context> &on,
                                          const shared_handle &shared) {
    auto scope = context::current::enter(*on);
    DIOMP_TRY(scope);
    if (shared.extents.size() == 1 && !shared.extents.front().fd.valid()) {
        return open_plain(on, shared);
    }
    // The owner has rounded the size for its device; no device needs more than 2 MiB.
    auto range = address_range::reserve(on->driver(), shared.reserved_bytes, 0);
    DIOMP_TRY(range);
    auto mapped = std::make_unique<mapped_peer>(on, range.take());
    DIOMP_TRY(mapped->map_more(shared));
    return std::unique_ptr<peer_memory>(std::move(mapped));
}

} // namespace diomp::device::cuda
