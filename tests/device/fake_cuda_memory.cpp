// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stand-in's memory: virtual memory management and what is known of addresses.
#include "device/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <vector>

namespace fake_cuda {

namespace {

/// Behind the memory in its memfd.
struct label {
    std::uint64_t magic;
    std::uint64_t size;
    int device;
};

bool aligned(device_address where) { return where % granularity == 0; }

/// The entry of an ordered map of ranges in which the address lies.
template <typename Map>
auto holding(Map &ranges, device_address where) {
    auto after = ranges.upper_bound(where);
    if (after == ranges.begin()) {
        return ranges.end();
    }
    auto const found = std::prev(after);
    return where - found->first < found->second.size ? found : ranges.end();
}

bool is_reserved(device_address from, std::size_t size) {
    auto after = all().reservations.upper_bound(from);
    if (after == all().reservations.begin()) {
        return false;
    }
    auto const found = std::prev(after);
    return from + size <= found->first + found->second;
}

} // namespace

physical make_physical(int device, std::size_t size, bool exportable) {
    physical made;
    made.fd = ::memfd_create("fake-cuda", MFD_CLOEXEC);
    made.size = size;
    made.device = device;
    made.exportable = exportable;
    label const text{magic, size, device};
    if (::ftruncate(made.fd, static_cast<off_t>(size + 4096)) != 0 ||
        ::pwrite(made.fd, &text, sizeof(text), static_cast<off_t>(size)) != sizeof(text)) {
        std::abort();
    }
    return made;
}

physical open_physical(int fd) {
    physical found;
    label text{};
    off_t const end = ::lseek(fd, 0, SEEK_END);
    if (end < 4096 || ::pread(fd, &text, sizeof(text), end - 4096) != sizeof(text) ||
        text.magic != magic) {
        return found;
    }
    found.fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    found.size = text.size;
    found.device = text.device;
    return found;
}

std::size_t device_bytes() {
    return static_cast<std::size_t>(stand_in::number_of("FAKE_CUDA_MEBIBYTES", 64)) << 20;
}

namespace {

/// Where the bytes of an address are: in a memfd, or (-1) in host memory.
struct spot {
    int fd = -1;
    std::size_t offset = 0;
    std::size_t left = SIZE_MAX; ///< until something else begins
};

spot find_spot(device_address where) {
    world &w = all();
    if (auto const mapped = holding(w.mappings, where); mapped != w.mappings.end()) {
        std::size_t const inside = where - mapped->first;
        return {w.handles.at(mapped->second.handle).fd, inside, mapped->second.size - inside};
    }
    if (auto const own = holding(w.allocations, where); own != w.allocations.end()) {
        std::size_t const inside = where - own->first;
        return {own->second.of.fd, inside, own->second.size - inside};
    }
    return {};
}

} // namespace

void transfer(bool reading, device_address where, char *buffer, std::size_t size) {
    while (size > 0) {
        spot const at = find_spot(where);
        std::size_t const part = std::min(size, at.left);
        auto const offset = static_cast<off_t>(at.offset);
        if (at.fd < 0) {
            std::memcpy(reading ? buffer : pointer(where), reading ? pointer(where) : buffer, part);
        } else if ((reading
                        ? ::pread(at.fd, buffer, part, offset)
                        : ::pwrite(at.fd, buffer, part, offset)) != static_cast<ssize_t>(part)) {
            std::abort();
        }
        where += part;
        buffer += part;
        size -= part;
    }
}

void expose(device_address where, bool allow) {
    if (protection() != PROT_NONE) {
        return;
    }
    constexpr std::size_t page = 4096;
    spot const at = find_spot(where);
    ::mmap(pointer(where / page * page), page, allow ? PROT_READ | PROT_WRITE : PROT_NONE,
           MAP_SHARED | MAP_FIXED, at.fd, static_cast<off_t>(at.offset / page * page));
}

void move_bytes(device_address dst, device_address src, std::size_t size) {
    std::vector<char> between(size);
    transfer(true, src, between.data(), size);
    transfer(false, dst, between.data(), size);
}

bool is_pinned(const void *where) {
    auto const in = [where](const std::map<void *, std::size_t> &ranges) {
        auto const after = ranges.upper_bound(const_cast<void *>(where));
        if (after == ranges.begin()) {
            return false;
        }
        auto const &[base, size] = *std::prev(after);
        return static_cast<const char *>(where) < static_cast<const char *>(base) + size;
    };
    return in(all().host_allocations) || in(all().registered);
}

int owner_of(device_address where) {
    world &w = all();
    if (auto const mapped = holding(w.mappings, where); mapped != w.mappings.end()) {
        return w.handles.at(mapped->second.handle).device;
    }
    auto const allocated = holding(w.allocations, where);
    return allocated == w.allocations.end() ? -1 : allocated->second.of.device;
}

bool may_touch(int device, device_address from, std::size_t size) {
    world &w = all();
    device_address const end = from + size;
    while (from < end) {
        if (auto const mapped = holding(w.mappings, from); mapped != w.mappings.end()) {
            if (!mapped->second.readers.contains(device)) {
                return false;
            }
            from = mapped->first + mapped->second.size;
            continue;
        }
        if (is_reserved(from, 1)) {
            return false; // nothing there
        }
        auto const allocated = holding(w.allocations, from);
        if (allocated == w.allocations.end()) {
            return true; // host memory, which nobody checks
        }
        allocation const &of = allocated->second;
        if (of.of.device != device && !of.opened &&
            !w.devices[static_cast<std::size_t>(device)].reaches.contains(of.of.device)) {
            return false;
        }
        from = allocated->first + of.size;
    }
    return true;
}

/// By this process: what it has opened is its owner's.
std::size_t used_on(int device) {
    std::size_t used = 0;
    for (auto const &[handle, of] : all().handles) {
        used += of.device == device ? of.size : 0;
    }
    for (auto const &[base, of] : all().allocations) {
        used += of.of.device == device && !of.opened ? of.size : 0;
    }
    return used;
}

namespace {

void drop(std::map<unsigned long long, physical>::iterator of) {
    if (--of->second.references == 0) {
        ::close(of->second.fd);
        all().handles.erase(of);
    }
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cuMemGetInfo_v2(std::size_t *free_bytes, std::size_t *total_bytes) {
    FAKE_CUDA_ENTER_CONTEXT
    *total_bytes = device_bytes();
    *free_bytes = device_bytes() - used_on(current);
    return ok;
}

EXPORTED int cuMemGetAllocationGranularity(std::size_t *size, const allocation_properties *of,
                                           int option) {
    FAKE_CUDA_ENTER
    if (of->type != 1 || of->where.type != 1 || option < 0 || option > 1) {
        return complain(__func__, "properties or option", invalid_value);
    }
    *size = granularity;
    return ok;
}

EXPORTED int cuMemAddressReserve(device_address *base, std::size_t size, std::size_t alignment,
                                 device_address wish, unsigned long long flags) {
    FAKE_CUDA_ENTER
    if (size == 0 || size % granularity != 0 || alignment % granularity != 0 || flags != 0) {
        return complain(__func__, "size, alignment or flags", invalid_value);
    }
    void *const found = ::mmap(pointer(wish), size + granularity, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        return out_of_memory;
    }
    // Rounded up; the rest stays mapped and unused.
    *base = (reinterpret_cast<device_address>(found) + granularity - 1) / granularity * granularity;
    all().reservations[*base] = size;
    return ok;
}

EXPORTED int cuMemAddressFree(device_address base, std::size_t size) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().reservations.find(base);
    if (found == all().reservations.end() || found->second != size) {
        return complain(__func__, "no such reservation", invalid_value);
    }
    auto const inside = all().mappings.lower_bound(base);
    if (inside != all().mappings.end() && inside->first < base + size) {
        return complain(__func__, "something is mapped there", invalid_value);
    }
    ::munmap(pointer(base), size);
    all().reservations.erase(found);
    return ok;
}

EXPORTED int cuMemCreate(unsigned long long *handle, std::size_t size,
                         const allocation_properties *of, unsigned long long flags) {
    FAKE_CUDA_ENTER
    if (of->type != 1 || of->where.type != 1 || of->gpu_direct_rdma != 1 || of->usage != 0 ||
        of->compression != 0 || flags != 0 || size == 0 || size % granularity != 0) {
        return complain(__func__, "properties, size or flags", invalid_value);
    }
    if (used_on(of->where.id) + size > device_bytes()) {
        return out_of_memory;
    }
    *handle = ++all().last_handle;
    all().handles[*handle] = make_physical(of->where.id, size, of->handle_types == 1);
    return ok;
}

EXPORTED int cuMemRelease(unsigned long long handle) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().handles.find(handle);
    if (found == all().handles.end()) {
        return complain(__func__, "no such handle", invalid_value);
    }
    drop(found);
    return ok;
}

EXPORTED int cuMemMap(device_address base, std::size_t size, std::size_t offset,
                      unsigned long long handle, unsigned long long flags) {
    FAKE_CUDA_ENTER
    auto const found = all().handles.find(handle);
    if (found == all().handles.end() || !aligned(base) || offset != 0 || flags != 0 ||
        size != found->second.size || !is_reserved(base, size)) {
        return complain(__func__, "handle, range, offset or flags", invalid_value);
    }
    auto const next = all().mappings.lower_bound(base);
    if (holding(all().mappings, base) != all().mappings.end() ||
        (next != all().mappings.end() && next->first < base + size)) {
        return complain(__func__, "something is mapped there", already_mapped);
    }
    if (protection() != PROT_NONE) {
        ::mmap(pointer(base), size, protection(), MAP_SHARED | MAP_FIXED, found->second.fd, 0);
    }
    ++found->second.references;
    all().mappings[base] = {size, handle, {}};
    return ok;
}

EXPORTED int cuMemUnmap(device_address base, std::size_t size) {
    FAKE_CUDA_ENTER_CONTEXT
    auto const found = all().mappings.find(base);
    if (found == all().mappings.end() || found->second.size != size) {
        return complain(__func__, "no such mapping", invalid_value);
    }
    ::mmap(pointer(base), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
           -1, 0);
    drop(all().handles.find(found->second.handle));
    all().mappings.erase(found);
    return ok;
}

EXPORTED int cuMemSetAccess(device_address base, std::size_t size, const access_description *of,
                            std::size_t count) {
    FAKE_CUDA_ENTER
    auto const found = all().mappings.find(base);
    if (found == all().mappings.end() || found->second.size != size || count == 0) {
        return complain(__func__, "no such mapping", invalid_value);
    }
    int const owner = all().handles.at(found->second.handle).device;
    for (std::size_t i = 0; i < count; ++i) {
        if (of[i].where.type != 1 || of[i].flags != 3) {
            return complain(__func__, "description", invalid_value);
        }
        if (of[i].where.id != owner && !peers_exist()) {
            return not_supported;
        }
        found->second.readers.insert(of[i].where.id);
    }
    return ok;
}

EXPORTED int cuMemExportToShareableHandle(void *into, unsigned long long handle, int type,
                                          unsigned long long flags) {
    FAKE_CUDA_ENTER
    auto const found = all().handles.find(handle);
    if (found == all().handles.end() || !found->second.exportable || type != 1 || flags != 0) {
        return complain(__func__, "handle, type or flags", invalid_value);
    }
    *static_cast<int *>(into) = ::fcntl(found->second.fd, F_DUPFD_CLOEXEC, 0);
    return ok;
}

EXPORTED int cuMemImportFromShareableHandle(unsigned long long *handle, void *shared, int type) {
    FAKE_CUDA_ENTER
    physical const found = open_physical(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)));
    if (found.fd < 0 || type != 1) {
        return invalid_value;
    }
    *handle = ++all().last_handle;
    all().handles[*handle] = found;
    return ok;
}

EXPORTED int cuPointerGetAttribute(void *into, int which, device_address where) {
    FAKE_CUDA_ENTER
    int const device = owner_of(where);
    bool const pinned = is_pinned(pointer(where));
    if (device < 0 && !pinned) {
        return invalid_value; // as for any address that the driver does not know
    }
    if (which == 2) {
        *static_cast<unsigned *>(into) = pinned ? 1 : 2;
    } else if (which == 9) {
        *static_cast<int *>(into) = pinned ? 0 : device;
    } else {
        return complain(__func__, "attribute", invalid_value);
    }
    return ok;
}
