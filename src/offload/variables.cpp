// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/variables.h"

#include "base/log.h"
#include "base/service_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace diomp::offload {
namespace {

/// Whether all of [address, address + nbytes) is writable in this process. False if the system does
/// not report it.
bool is_writable(std::uint64_t address, std::uint64_t nbytes) {
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> const maps(std::fopen("/proc/self/maps", "re"),
                                                                std::fclose);
    if (maps == nullptr) {
        return false;
    }
    char line[512];
    std::uint64_t const end = address + nbytes;
    while (address < end && std::fgets(line, sizeof(line), maps.get()) != nullptr) {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        char rights[5] = {};
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, rights) != 3) {
            continue; // the rest of a long line
        }
        if (from <= address && address < to) {
            if (rights[1] != 'w') {
                return false;
            }
            address = to;
        }
    }
    return address >= end;
}

} // namespace

variables::variables(alloc_directory &devices, memory::directory &registered,
                     const memory::segment &host, messaging::engine &engine,
                     messaging::call_service &calls)
    : devices_(devices), registered_(registered), host_(host), calls_(calls),
      request_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_request(incoming); })) {}

variables::~variables() { stop(); }

void variables::stop() {
    {
        std::lock_guard const guard(pending_mutex_);
        stopping_ = true;
    }
    pending_changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void variables::attach(table_source table, copy_finder find_copy) {
    table_ = table;
    find_copy_ = std::move(find_copy);
}

void variables::open() {
    {
        std::lock_guard const guard(pending_mutex_);
        is_open_ = true;
    }
    pending_changed_.notify_all();
}

void variables::close() {
    std::lock_guard const reply_guard(reply_mutex_);
    is_closed_ = true;
    for (std::uint64_t const base : std::exchange(exposed_ranges_, {})) {
        if (status const removed = registered_.remove(base); !removed) {
            log(log_level::warn, "a declare target variable: {}", removed.failure().message());
        }
    }
    std::lock_guard const guard(mutex_);
    exposed_on_accelerators_.clear();
}

/// Reads libomptarget's variables if its generation has changed.
void variables::refresh(const diomp_variable_table &from) {
    std::uint64_t const generation = from.generation();
    {
        std::shared_lock const guard(mutex_);
        if (generation_ == generation) {
            return;
        }
    }
    struct collection {
        const memory::segment &own;
        std::map<std::uintptr_t, variable> found;
    } collected{host_, {}};
    from.visit(
        [](void *into, const void *host, std::uint64_t nbytes, const char *name) {
            auto &to = *static_cast<collection *>(into);
            to.found[reinterpret_cast<std::uintptr_t>(host)] = {
                static_cast<const std::byte *>(host), nbytes, identify(host, to.own), name};
        },
        &collected);
    std::lock_guard const guard(mutex_);
    by_address_ = std::move(collected.found);
    generation_ = generation;
}

std::optional<variable> variables::find(const void *host) {
    diomp_variable_table const *const from = table();
    if (from == nullptr) {
        return std::nullopt;
    }
    refresh(*from);
    auto const address = reinterpret_cast<std::uintptr_t>(host);
    std::shared_lock const guard(mutex_);
    auto const after = by_address_.upper_bound(address);
    if (after == by_address_.begin()) {
        return std::nullopt;
    }
    variable const &before = std::prev(after)->second;
    return address - reinterpret_cast<std::uintptr_t>(before.host) < before.nbytes
               ? std::optional(before)
               : std::nullopt;
}

std::optional<variable> variables::find_requested(const address_request &request) {
    identity const &what = request.what;
    diomp_variable_table const *const from = table();
    if (from == nullptr || what.from != identity::origin::variable) {
        return std::nullopt;
    }
    refresh(*from);
    std::shared_lock const guard(mutex_);
    auto const found = std::ranges::find_if(by_address_, [&](const auto &entry) {
        identity const &own = entry.second.what;
        return own.from == what.from && own.module == what.module && own.offset == what.offset &&
               hash_of(entry.second.name.c_str()) == request.name;
    });
    return found == by_address_.end() ? std::nullopt : std::optional(found->second);
}

status variables::load(int device) {
    diomp_variable_table const *const from = table();
    if (from == nullptr || from->load(device) == 0) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("the program's image cannot be loaded on device {}", device),
                     "see libomptarget's output with LIBOMPTARGET_INFO=-1");
    }
    return {};
}

error variables::error_of(world_rank owner, int device, const variable &of,
                          const address_reply &reply) const {
    switch (reply.how) {
    case outcome::no_device:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no device {} with a copy of {}", owner.value(), device,
                            of.name),
                "pass a device number that the other rank has"};
    case outcome::no_copy:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no copy of {} on device {} that other ranks can access",
                            owner.value(), of.name, reply.device),
                fmt::format("see the messages of rank {}", owner.value())};
    case outcome::closed:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} no longer has a copy of {}: its program has ended",
                            owner.value(), of.name),
                "call a barrier after the last transfer"};
    case outcome::no_variable:
    case outcome::found:
        break;
    }
    return {OMPX_ERR_ADDRESS,
            fmt::format("rank {} has no declare target variable {} ({})", owner.value(), of.name,
                        describe(of.what)),
            "run the same program on all ranks, and load its libraries on all of them"};
}

result<remote_copy> variables::locate_copy(world_rank owner, int device, const variable &of) {
    key const wanted{owner.value(), device, of.what.module, of.what.offset};
    {
        std::shared_lock const guard(mutex_);
        if (auto const known = cache_.find(wanted); known != cache_.end()) {
            return known->second;
        }
    }
    auto replied = calls_.call<address_reply>(
        owner, request_handler_,
        address_request{
            {}, of.what, hash_of(of.name.c_str()), device, devices_.device_index_of(device)},
        [&] {
            return fmt::format("waiting for rank {} to locate {} on device {}", owner.value(),
                               of.name, device);
        });
    DIOMP_TRY(replied);
    address_reply const &reply = replied.value();
    if (reply.how != outcome::found) {
        return error_of(owner, device, of, reply);
    }
    if (reply.nbytes != of.nbytes) {
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {}'s variable {} has {} bytes, this rank's has {}",
                                 owner.value(), of.name, reply.nbytes, of.nbytes),
                     "run the same program on all ranks");
    }
    remote_copy const found{reply.address, reply.device, reply.on_accelerator != 0,
                            reply.is_constant != 0};
    std::lock_guard const guard(mutex_);
    cache_.insert_or_assign(wanted, found);
    return found;
}

void variables::on_request(const transport::message &incoming) {
    pending_request added{incoming.source, {}};
    std::memcpy(&added.request, incoming.payload.data(), sizeof(added.request));
    std::lock_guard const guard(pending_mutex_);
    if (stopping_) {
        return;
    }
    pending_.push_back(added);
    if (!thread_.joinable()) {
        thread_ = start_service_thread("diomp-variables", [this] { serve(); });
    }
    pending_changed_.notify_one();
}

void variables::serve() {
    for (;;) {
        pending_request next;
        {
            std::unique_lock guard(pending_mutex_);
            pending_changed_.wait(guard,
                                  [&] { return stopping_ || (is_open_ && !pending_.empty()); });
            if (stopping_) {
                return;
            }
            next = pending_.front();
            pending_.pop_front();
        }
        std::lock_guard const reply_guard(reply_mutex_);
        calls_.reply(next.requester, next.request.header.id, make_reply(next.request));
    }
}

variables::address_reply variables::make_reply(const address_request &request) {
    address_reply reply;
    if (is_closed_) {
        reply.how = outcome::closed;
        return reply;
    }
    auto const own = find_requested(request);
    if (!own) {
        return reply;
    }
    reply.nbytes = own->nbytes;
    reply.device = devices_.resolve_device(request.device, request.device_index);
    auto const copy = find_copy_(*own, reply.device);
    if (!copy) {
        log(log_level::info, "{} on device {}, requested by another rank: {}", own->name,
            reply.device, copy.failure().message());
        reply.how = copy.failure().code() == OMPX_ERR_ARG ? outcome::no_device : outcome::no_copy;
        return reply;
    }
    device_ptr const &at = copy.value();
    if (status const exposed = expose(reply.device, *own, at); !exposed) {
        log(log_level::warn, "other ranks cannot access {} on device {}: {}", own->name,
            reply.device, exposed.failure().message());
        reply.how = outcome::no_copy;
        return reply;
    }
    reply.how = outcome::found;
    reply.address = reinterpret_cast<std::uintptr_t>(at.address);
    reply.on_accelerator = at.on != nullptr ? 1 : 0;
    // Kernels may cache the value of a constant on a GPU, so the host's variable decides.
    std::uint64_t const probed_address =
        at.on == nullptr ? reply.address : reinterpret_cast<std::uintptr_t>(own->host);
    reply.is_constant = is_writable(probed_address, reply.nbytes) ? 0 : 1;
    return reply;
}

/// Grants other ranks access: later requests by address are checked against this.
status variables::expose(int device, const variable &of, const device_ptr &copy) {
    auto const address = reinterpret_cast<std::uintptr_t>(copy.address);
    if (copy.on != nullptr) {
        std::lock_guard const guard(mutex_);
        exposed_on_accelerators_[{device, address}] = of.nbytes;
        return {};
    }
    auto const known = registered_.find_own(address);
    if (known && address - known->base + of.nbytes <= known->nbytes) {
        return {};
    }
    DIOMP_TRY(registered_.add(address, of.nbytes));
    exposed_ranges_.push_back(address);
    return {};
}

std::optional<std::uint64_t> variables::bytes_left_in(int device, std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto const after = exposed_on_accelerators_.upper_bound({device, address});
    if (after == exposed_on_accelerators_.begin()) {
        return std::nullopt;
    }
    auto const &[where, nbytes] = *std::prev(after);
    return where.first == device && address - where.second < nbytes
               ? std::optional(nbytes - (address - where.second))
               : std::nullopt;
}

} // namespace diomp::offload
