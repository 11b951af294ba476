// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/memory.h"

#include "base/settings.h"
#include "device/cuda/mapping.h"
#include "device/cuda/plain_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace diomp::device::cuda {
namespace {

std::size_t round_up(std::size_t size_bytes, std::size_t unit) {
    return (size_bytes + unit - 1) / unit * unit;
}

std::byte *pointer(address base) { return reinterpret_cast<std::byte *>(base); }

/// Members in the order in which they may be undone: chunks go before the range they lie in.
class mapped_reservation final : public memory, public mapped_memory {
public:
    mapped_reservation(std::shared_ptr<context> on, abilities can, allocation_properties kind,
                       address_range range, std::size_t unit)
        : on_(std::move(on)), can_(can), kind_(kind), unit_(unit),
          range_(std::make_unique<address_range>(std::move(range))) {}
    ~mapped_reservation() override {
        on_->forget(*this);
        auto const inside = context::current::enter(*on_);
        chunks_.clear();
        range_.reset();
    }

    [[nodiscard]] std::byte *base() const override { return pointer(range_->base()); }
    [[nodiscard]] std::size_t reserved_bytes() const override { return range_->size_bytes(); }
    [[nodiscard]] std::size_t committed_bytes() const override {
        return committed_.load(std::memory_order_relaxed);
    }

    status commit(std::size_t offset_bytes, std::size_t nbytes) override {
        if (nbytes > reserved_bytes() || offset_bytes > reserved_bytes() - nbytes) {
            return outside(*this, offset_bytes, nbytes);
        }
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        std::size_t const end = round_up(offset_bytes + nbytes, unit_);
        for (std::size_t begin = offset_bytes / unit_ * unit_; begin < end;) {
            extent const next = first_committed(begin, end);
            if (next.begin > begin) {
                DIOMP_TRY(add(begin, next.begin - begin));
            }
            begin = next.end;
        }
        return {};
    }

    [[nodiscard]] std::size_t num_parts() const override { return chunks_.size(); }

    result<shared_handle> share(std::size_t num_known, std::size_t max_parts) override {
        if (!can_.exports) {
            return error(
                OMPX_ERR_UNSUPPORTED,
                fmt::format("CUDA device {} does not export memory as descriptors", on_->device()));
        }
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        shared_handle shared;
        shared.reserved_bytes = reserved_bytes();
        for (std::size_t i = num_known; i < chunks_.size() && i - num_known < max_parts; ++i) {
            chunk const &each = chunks_[i];
            int fd = -1;
            DIOMP_TRY(check(on_->driver(),
                            on_->driver().mem_export(&fd, each.physical(), handle_descriptor, 0),
                            "cuMemExportToShareableHandle"));
            shared.parts.push_back({.offset_bytes = each.base() - range_->base(),
                                    .size_bytes = each.size_bytes(),
                                    .fd = unique_fd(fd)});
        }
        return shared;
    }

    status admit(ordinal device) override {
        for (chunk &each : chunks_) {
            DIOMP_TRY(each.admit({&device, 1}));
        }
        return {};
    }

private:
    struct extent {
        std::size_t begin;
        std::size_t end;
    };
    /// The first chunk in [begin, end), or what is behind the end.
    [[nodiscard]] extent first_committed(std::size_t begin, std::size_t end) const {
        extent first{end, end};
        for (chunk const &each : chunks_) {
            std::size_t const at = each.base() - range_->base();
            if (at < first.begin && at + each.size_bytes() > begin) {
                first = {at, at + each.size_bytes()};
            }
        }
        return first;
    }
    status add(std::size_t offset_bytes, std::size_t nbytes) {
        auto made = chunk::create(on_->driver(), nbytes, kind_);
        DIOMP_TRY(made);
        return on_->map_for_readers(*this, [&](std::span<const ordinal> readers) -> status {
            chunk added = made.take();
            DIOMP_TRY(added.map(range_->base() + offset_bytes));
            DIOMP_TRY(added.admit(readers));
            committed_.fetch_add(nbytes, std::memory_order_relaxed);
            chunks_.push_back(std::move(added));
            return {};
        });
    }

    std::shared_ptr<context> on_;
    abilities const can_;
    allocation_properties const kind_;
    std::size_t const unit_;
    std::unique_ptr<address_range> range_;
    std::vector<chunk> chunks_; ///< changed under the context's mutex
    std::atomic<std::size_t> committed_{0};
};

/// The same range of another process. Only the device that has opened it reads it.
class mapped_peer final : public peer_memory {
public:
    mapped_peer(std::shared_ptr<context> on, address_range range)
        : on_(std::move(on)), range_(std::make_unique<address_range>(std::move(range))) {}
    ~mapped_peer() override {
        auto const inside = context::current::enter(*on_);
        chunks_.clear();
        range_.reset();
    }

    [[nodiscard]] std::byte *base() const override { return pointer(range_->base()); }
    [[nodiscard]] std::size_t mapped_bytes() const override { return mapped_; }

    status map_more(const shared_handle &added) override {
        auto inside = context::current::enter(*on_);
        DIOMP_TRY(inside);
        std::vector<chunk> fresh; // all of them or none
        for (shared_part const &part : added.parts) {
            if (overlaps(chunks_, part) || overlaps(fresh, part) || !part.fd.valid() ||
                part.size_bytes > range_->size_bytes() ||
                part.offset_bytes > range_->size_bytes() - part.size_bytes) {
                return error(OMPX_ERR_ARG,
                             fmt::format("a shared part of {} at {} overlaps what is mapped, or "
                                         "does not fit into the {} of the reservation",
                                         part.size_bytes, part.offset_bytes, range_->size_bytes()));
            }
            auto imported = chunk::import(on_->driver(), part.fd.get(), part.size_bytes);
            DIOMP_TRY(imported);
            ordinal const device = on_->device();
            DIOMP_TRY(imported.value().map(range_->base() + part.offset_bytes));
            DIOMP_TRY(imported.value().admit({&device, 1}));
            fresh.push_back(imported.take());
        }
        for (chunk &each : fresh) {
            mapped_ += each.size_bytes();
            chunks_.push_back(std::move(each));
        }
        return {};
    }

private:
    [[nodiscard]] bool overlaps(const std::vector<chunk> &mapped, const shared_part &part) const {
        return std::ranges::any_of(mapped, [&](const chunk &each) {
            std::uint64_t const at = each.base() - range_->base();
            return part.offset_bytes < at + each.size_bytes() &&
                   at < part.offset_bytes + part.size_bytes;
        });
    }

    std::shared_ptr<context> on_;
    std::unique_ptr<address_range> range_;
    std::vector<chunk> chunks_;
    std::size_t mapped_ = 0;
};

allocation_properties kind_of(ordinal device, abilities can) {
    allocation_properties kind;
    kind.where.id = device;
    kind.requested_handle_types = can.exports ? handle_descriptor : handle_none;
    kind.network_capable = can.network_reads ? 1 : 0;
    return kind;
}

/// What sizes and offsets are multiples of.
result<std::size_t> unit_of(const library &driver, const allocation_properties &kind) {
    std::size_t unit = 0;
    DIOMP_TRY(check(driver, driver.mem_granularity(&unit, &kind, granularity_recommended),
                    "cuMemGetAllocationGranularity"));
    return unit;
}

} // namespace

result<abilities> abilities_of(const library &driver, ordinal device) {
    abilities found;
    auto const ask = [&](int which, bool &into) {
        int value = 0;
        status outcome = check(driver, driver.device_get_attribute(&value, which, device),
                               "cuDeviceGetAttribute");
        into = value != 0;
        return outcome;
    };
    DIOMP_TRY(ask(virtual_memory_supported, found.maps));
    DIOMP_TRY(ask(descriptor_handles_supported, found.exports));
    DIOMP_TRY(ask(network_reads_virtual_memory, found.network_reads));
    return found;
}

result<std::unique_ptr<memory>> reserve(const std::shared_ptr<context> &on, abilities can,
                                        std::size_t max_bytes) {
    auto inside = context::current::enter(*on);
    DIOMP_TRY(inside);
    if (!can.maps) {
        return allocate_plain(on, max_bytes);
    }
    allocation_properties const kind = kind_of(on->device(), can);
    auto unit = unit_of(on->driver(), kind);
    DIOMP_TRY(unit);
    auto range =
        address_range::reserve(on->driver(), round_up(max_bytes, unit.value()), unit.value());
    DIOMP_TRY(range);
    return std::unique_ptr<memory>(
        std::make_unique<mapped_reservation>(on, can, kind, range.take(), unit.value()));
}

result<std::unique_ptr<peer_memory>> open(const std::shared_ptr<context> &on,
                                          const shared_handle &shared) {
    auto inside = context::current::enter(*on);
    DIOMP_TRY(inside);
    if (shared.parts.size() == 1 && !shared.parts.front().fd.valid()) {
        return open_plain(on, shared);
    }
    // The owner has rounded the size for its device; no device wants more than 2 MiB.
    auto range = address_range::reserve(on->driver(), shared.reserved_bytes, 0);
    DIOMP_TRY(range);
    auto mapped = std::make_unique<mapped_peer>(on, range.take());
    DIOMP_TRY(mapped->map_more(shared));
    return std::unique_ptr<peer_memory>(std::move(mapped));
}

} // namespace diomp::device::cuda
