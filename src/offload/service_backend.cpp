// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/service_backend.h"

#include "base/log.h"
#include "base/sanitizer.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace diomp::offload {
namespace {

using device::device_id;
using addresses = service_backend::address_table;

constexpr std::size_t host_page_bytes = 4096;

std::uint64_t number_of(const void *address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Reserves addresses of this process, without memory; false: some are in use.
bool reserve_addresses(std::uint64_t base, std::size_t nbytes) {
    void *const wanted = reinterpret_cast<void *>(base); // NOLINT(performance-no-int-to-ptr)
    void *const got =
        ::mmap(wanted, nbytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED && got != wanted) { // a kernel before 4.17
        ::munmap(got, nbytes);
    }
    return got == wanted;
}

void release_addresses(std::uint64_t base, std::size_t nbytes) {
    ::munmap(reinterpret_cast<void *>(base), nbytes); // NOLINT(performance-no-int-to-ptr)
}

/// Reserves addresses that neither processes nor drivers choose by themselves, as a rule; 0: these
/// are in use.
std::uint64_t reserve_for_segment(int device, std::size_t nbytes) {
    constexpr std::uint64_t unused =
        0x600000000000; // between libraries and position-independent programs
    constexpr std::uint64_t each_bytes = std::uint64_t{1} << 40;
    if (has_thread_sanitizer() || nbytes > each_bytes) {
        return 0;
    }
    std::uint64_t const base = unused + static_cast<std::uint64_t>(device) * each_bytes;
    return reserve_addresses(base, nbytes) ? base : 0;
}

error not_shared() {
    return {OMPX_ERR_UNSUPPORTED, "memory of a service's device cannot be shared with a process"};
}

class reserved_memory final : public device::memory {
public:
    /// The addresses from `base` on are reserved.
    reserved_memory(service_devices &all_devices, std::shared_ptr<addresses> all, device_id on,
                    std::uint64_t allocated, std::byte *base, std::size_t nbytes)
        : devices_(all_devices), all_(std::move(all)), on_(on), allocated_(allocated), base_(base),
          nbytes_(nbytes) {
        all_->add(number_of(base), nbytes, {on, number_of(base)});
    }
    ~reserved_memory() override {
        all_->remove(number_of(base_));
        ::munmap(base_, nbytes_);
        devices_.release(on_.value(), allocated_);
    }

    [[nodiscard]] std::byte *base() const override { return base_; }
    [[nodiscard]] std::size_t reserved_bytes() const override { return nbytes_; }
    [[nodiscard]] std::size_t committed_bytes() const override { return nbytes_; }
    status commit(std::size_t offset_bytes, std::size_t nbytes) override {
        if (nbytes > nbytes_ || offset_bytes > nbytes_ - nbytes) {
            return out_of_range(*this, offset_bytes, nbytes);
        }
        return {};
    }
    [[nodiscard]] std::size_t num_extents() const override { return 1; }
    result<device::shared_handle> share(std::size_t /*num_known*/,
                                        std::size_t /*max_extents*/) override {
        return not_shared();
    }

private:
    service_devices &devices_;
    std::shared_ptr<addresses> all_;
    device_id on_;
    std::uint64_t allocated_; ///< its first address, which is before base_
    std::byte *base_;
    std::size_t nbytes_;
};

class copies_by_messages final : public device::queue {
public:
    copies_by_messages(service_devices &all_devices, std::shared_ptr<addresses> all, device_id on)
        : devices_(all_devices), all_(std::move(all)), on_(on) {}

    status copy(void *dst, const void *src, std::size_t nbytes) override {
        auto const to = address_on_device(dst);
        auto const from = address_on_device(src);
        if (nbytes == 0) {
            return {};
        }
        if (to && from) {
            return devices_.copy(on_.value(), *to, *from, nbytes);
        }
        if (to) {
            return devices_.write(on_.value(), *to, src, nbytes);
        }
        if (from) {
            return devices_.read(on_.value(), dst, *from, nbytes);
        }
        std::memmove(dst, src, nbytes);
        return {};
    }
    result<bool> is_idle() override { return true; }
    status wait() override { return {}; }

private:
    /// nullopt: memory of this process.
    [[nodiscard]] std::optional<std::uint64_t> address_on_device(const void *address) const {
        auto const found = all_->find(address);
        return found && found->of == on_ ? std::optional(found->address) : std::nullopt;
    }

    service_devices &devices_;
    std::shared_ptr<addresses> all_;
    device_id on_;
};

} // namespace

void service_backend::address_table::add(std::uintptr_t base, std::size_t nbytes, location what) {
    std::lock_guard const guard(mutex_);
    ranges_.emplace(base, range{nbytes, what});
}

void service_backend::address_table::remove(std::uintptr_t base) {
    std::lock_guard const guard(mutex_);
    ranges_.erase(base);
}

std::optional<addresses::location> addresses::find(const void *address) const {
    std::lock_guard const guard(mutex_);
    auto const after = ranges_.upper_bound(number_of(address));
    if (after == ranges_.begin()) {
        return std::nullopt;
    }
    auto const &[base, found] = *std::prev(after);
    std::uint64_t const inside = number_of(address) - base;
    return inside < found.nbytes
               ? std::optional(location{found.what.of, found.what.address + inside})
               : std::nullopt;
}

service_backend::service_backend(service_devices &all_devices)
    : devices_(all_devices), addresses_(std::make_shared<address_table>()) {}

int service_backend::num_devices() const { return devices_.num_devices(); }

result<device::properties> service_backend::describe(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    auto const about = devices_.describe(device.value());
    if (!about) {
        return error(OMPX_ERR_UNSUPPORTED, "the device is not a GPU of a service");
    }
    device::properties found;
    found.name = about->name;
    found.total_bytes = found.free_bytes = about->memory_bytes;
    return found;
}

result<device::device_uuid> service_backend::uuid_of(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return device::device_uuid{};
}

// Devices choose their addresses. Those that this process uses itself are kept until it has others.
result<std::unique_ptr<device::memory>>
service_backend::reserve_at(device_id device, std::size_t max_bytes, std::uint64_t /*preferred*/) {
    constexpr int max_attempts = 8;
    DIOMP_TRY(check_device(*this, device));
    std::size_t const nbytes =
        (max_bytes + host_page_bytes - 1) / host_page_bytes * host_page_bytes;
    std::vector<std::uint64_t> in_use;
    std::unique_ptr<device::memory> made;
    auto const use = [&](std::uint64_t allocated, std::uint64_t base) {
        if (!reserve_addresses(base, nbytes)) {
            in_use.push_back(allocated);
            return;
        }
        made = std::make_unique<reserved_memory>(
            devices_, addresses_, device, allocated,
            reinterpret_cast<std::byte *>(base), // NOLINT(performance-no-int-to-ptr)
            nbytes);
    };
    // Calls in regions reach this one only. Sessions choose equal addresses for the segments of a
    // rank's devices, so this process chooses.
    std::uint64_t const preferred = reserve_for_segment(device.value(), nbytes);
    std::uint64_t const segment = devices_.allocate_segment(device.value(), nbytes, preferred);
    if (preferred != 0) {
        release_addresses(preferred, nbytes);
    }
    if (segment % host_page_bytes != 0) {
        in_use.push_back(segment);
    } else if (segment != 0) {
        use(segment, segment);
    }
    if (segment != 0 && made == nullptr) {
        log(log_level::warn,
            "calls in regions of the service's GPU {} fail: this process cannot have the addresses "
            "of the segment there",
            device.value());
    }
    status failed;
    while (made == nullptr && failed && in_use.size() < max_attempts) {
        auto allocated = devices_.allocate(device.value(), nbytes + host_page_bytes);
        if (!allocated) {
            failed = allocated.take_failure();
            break;
        }
        use(allocated.value(),
            (allocated.value() + host_page_bytes - 1) / host_page_bytes * host_page_bytes);
    }
    for (std::uint64_t const each : in_use) {
        devices_.release(device.value(), each);
    }
    DIOMP_TRY(failed);
    if (made == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("this process uses the addresses of the device's memory itself, "
                                 "in {} attempts",
                                 max_attempts));
    }
    return made;
}

result<std::unique_ptr<device::peer_memory>>
service_backend::open_shared(device_id device, const device::shared_handle & /*handle*/) {
    DIOMP_TRY(check_device(*this, device));
    return not_shared();
}

result<bool> service_backend::can_access(device_id device, device_id other) {
    DIOMP_TRY(check_device(*this, device));
    DIOMP_TRY(check_device(*this, other));
    return device == other;
}

result<std::unique_ptr<device::queue>> service_backend::make_queue(device_id device) {
    DIOMP_TRY(check_device(*this, device));
    return std::unique_ptr<device::queue>(
        std::make_unique<copies_by_messages>(devices_, addresses_, device));
}

result<device::pinned_memory> service_backend::allocate_pinned(std::size_t nbytes) {
    void *const base = std::malloc(nbytes);
    if (base == nullptr) {
        return error(OMPX_ERR_NOMEM, fmt::format("{} bytes of host memory", nbytes));
    }
    return device::pinned_memory(base, nbytes, [](void *gone) { std::free(gone); });
}

result<device::pinned_memory> service_backend::pin(void *base, std::size_t nbytes) {
    return device::pinned_memory(base, nbytes, [](void * /*kept*/) {});
}

result<std::byte *> service_backend::register_memory(device_id device, std::uint64_t address,
                                                     std::size_t nbytes) {
    DIOMP_TRY(check_device(*this, device));
    std::uint64_t const inside = address % host_page_bytes;
    std::uint64_t const first = address - inside;
    std::size_t const wanted =
        (inside + nbytes + host_page_bytes - 1) / host_page_bytes * host_page_bytes;
    std::lock_guard const guard(mutex_);
    std::byte *&pages = registered_[{device.value(), first, wanted}];
    if (pages != nullptr) {
        return pages + inside;
    }
    void *const made =
        ::mmap(nullptr, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
        return error(OMPX_ERR_NOMEM, fmt::format("no addresses for {} bytes of a device", nbytes));
    }
    pages = static_cast<std::byte *>(made);
    addresses_->add(number_of(pages), wanted, {device, first});
    return pages + inside;
}

service_backend::~service_backend() {
    for (auto const &[what, pages] : registered_) {
        if (pages != nullptr) {
            ::munmap(pages, std::get<2>(what));
        }
    }
}

std::optional<device_id> service_backend::owner_of(const void *address) {
    auto const found = addresses_->find(address);
    return found ? std::optional(found->of) : std::nullopt;
}

} // namespace diomp::offload
