// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/variables.h"

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

/// Whether all of [address, address + nbytes) may be written in this process. False where the
/// system does not say.
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
            continue; // the rest of a long name
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

variables::variables(ledger &devices, memory::directory &registered, const memory::segment &host,
                     conduit::engine &engine, conduit::call_service &calls)
    : devices_(devices), registered_(registered), host_(host), calls_(calls),
      question_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_question(incoming); })) {
}

variables::~variables() { stop(); }

void variables::stop() {
    {
        std::lock_guard const guard(questions_mutex_);
        stopping_ = true;
    }
    questions_changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void variables::use(table_source table, copy_finder find_copy) {
    table_ = table;
    find_copy_ = std::move(find_copy);
}

void variables::open() {
    {
        std::lock_guard const guard(questions_mutex_);
        is_open_ = true;
    }
    questions_changed_.notify_all();
}

void variables::close() {
    std::lock_guard const answering(answering_);
    is_closed_ = true;
    for (std::uint64_t const base : std::exchange(exposed_, {})) {
        if (status const removed = registered_.remove(base); !removed) {
            log(log_level::warn, "a declare target variable: {}", removed.failure().message());
        }
    }
    std::lock_guard const guard(mutex_);
    told_.clear();
}

/// What libomptarget has now, if that is not what is known.
void variables::learn(const diomp_variable_table &from) {
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
    known_ = std::move(collected.found);
    generation_ = generation;
}

std::optional<variable> variables::find(const void *host) {
    diomp_variable_table const *const from = table();
    if (from == nullptr) {
        return std::nullopt;
    }
    learn(*from);
    auto const address = reinterpret_cast<std::uintptr_t>(host);
    std::shared_lock const guard(mutex_);
    auto const after = known_.upper_bound(address);
    if (after == known_.begin()) {
        return std::nullopt;
    }
    variable const &before = std::prev(after)->second;
    return address - reinterpret_cast<std::uintptr_t>(before.host) < before.nbytes
               ? std::optional(before)
               : std::nullopt;
}

std::optional<variable> variables::find_asked(const question &asked) {
    identity const &what = asked.what;
    diomp_variable_table const *const from = table();
    if (from == nullptr || what.from != identity::origin::variable) {
        return std::nullopt;
    }
    learn(*from);
    std::shared_lock const guard(mutex_);
    auto const found = std::ranges::find_if(known_, [&](const auto &entry) {
        identity const &own = entry.second.what;
        return own.from == what.from && own.module == what.module && own.offset == what.offset &&
               hash_of(entry.second.name.c_str()) == asked.name;
    });
    return found == known_.end() ? std::nullopt : std::optional(found->second);
}

status variables::load(int device) {
    diomp_variable_table const *const from = table();
    if (from == nullptr || from->load(device) == 0) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("the program's image cannot be loaded on device {}", device),
                     "see what libomptarget says with LIBOMPTARGET_INFO=-1");
    }
    return {};
}

error variables::explain(world_rank owner, int device, const variable &of,
                         const answer &told) const {
    switch (told.how) {
    case outcome::no_device:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no device {} with a copy of {}", owner.value(), device,
                            of.name),
                "pass a device number that the other rank has"};
    case outcome::no_copy:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no copy of {} on device {} that others reach",
                            owner.value(), of.name, told.device),
                fmt::format("see what rank {} says", owner.value())};
    case outcome::closed:
        return {OMPX_ERR_ADDRESS,
                fmt::format("rank {} has no copy of {} any more: its program has ended",
                            owner.value(), of.name),
                "let a barrier follow the last transfer"};
    case outcome::no_variable:
    case outcome::found:
        break;
    }
    return {OMPX_ERR_ADDRESS,
            fmt::format("rank {} has no declare target variable {} ({})", owner.value(), of.name,
                        describe(of.what)),
            "run the same program on all ranks, and load its libraries on all of them"};
}

result<remote_copy> variables::ask(world_rank owner, int device, const variable &of) {
    key const wanted{owner.value(), device, of.what.module, of.what.offset};
    {
        std::shared_lock const guard(mutex_);
        if (auto const known = kept_.find(wanted); known != kept_.end()) {
            return known->second;
        }
    }
    auto replied = calls_.call<answer>(
        owner, question_handler_,
        question{{}, of.what, hash_of(of.name.c_str()), device, devices_.place_of(device)}, [&] {
            return fmt::format("waiting for rank {} to say where it has {} on device {}",
                               owner.value(), of.name, device);
        });
    DIOMP_TRY(replied);
    answer const &told = replied.value();
    if (told.how != outcome::found) {
        return explain(owner, device, of, told);
    }
    if (told.nbytes != of.nbytes) {
        return error(OMPX_ERR_MISMATCH,
                     fmt::format("rank {}'s variable {} has {} bytes, this rank's has {}",
                                 owner.value(), of.name, told.nbytes, of.nbytes),
                     "run the same program on all ranks");
    }
    remote_copy const found{told.address, told.device, told.on_accelerator != 0,
                            told.is_constant != 0};
    std::lock_guard const guard(mutex_);
    kept_.insert_or_assign(wanted, found);
    return found;
}

void variables::on_question(const conduit::message &incoming) {
    open_question added{incoming.source, {}};
    std::memcpy(&added.asked, incoming.payload.data(), sizeof(added.asked));
    std::lock_guard const guard(questions_mutex_);
    if (stopping_) {
        return;
    }
    questions_.push_back(added);
    if (!thread_.joinable()) {
        thread_ = start_service_thread("diomp-variables", [this] { serve(); });
    }
    questions_changed_.notify_one();
}

void variables::serve() {
    for (;;) {
        open_question next;
        {
            std::unique_lock guard(questions_mutex_);
            questions_changed_.wait(guard,
                                    [&] { return stopping_ || (is_open_ && !questions_.empty()); });
            if (stopping_) {
                return;
            }
            next = questions_.front();
            questions_.pop_front();
        }
        std::lock_guard const answering(answering_);
        calls_.reply(next.asker, next.asked.header.id, find_answer(next.asked));
    }
}

variables::answer variables::find_answer(const question &asked) {
    answer told;
    if (is_closed_) {
        told.how = outcome::closed;
        return told;
    }
    auto const own = find_asked(asked);
    if (!own) {
        return told;
    }
    told.nbytes = own->nbytes;
    told.device = devices_.device_meant(asked.device, asked.place);
    auto const copy = find_copy_(*own, told.device);
    if (!copy) {
        log(log_level::info, "{} on device {}, which another rank asks for: {}", own->name,
            told.device, copy.failure().message());
        told.how = copy.failure().code() == OMPX_ERR_ARG ? outcome::no_device : outcome::no_copy;
        return told;
    }
    end const &at = copy.value();
    if (status const exposed = expose(told.device, *own, at); !exposed) {
        log(log_level::warn, "{} on device {} stays out of other ranks' reach: {}", own->name,
            told.device, exposed.failure().message());
        told.how = outcome::no_copy;
        return told;
    }
    told.how = outcome::found;
    told.address = reinterpret_cast<std::uintptr_t>(at.address);
    told.on_accelerator = at.on != nullptr ? 1 : 0;
    // Kernels may keep what a GPU's copy of a constant holds.
    std::uint64_t const known_here =
        at.on == nullptr ? told.address : reinterpret_cast<std::uintptr_t>(own->host);
    told.is_constant = is_writable(known_here, told.nbytes) ? 0 : 1;
    return told;
}

/// What others ask for from now on by address is checked against this.
status variables::expose(int device, const variable &of, const end &copy) {
    auto const address = reinterpret_cast<std::uintptr_t>(copy.address);
    if (copy.on != nullptr) {
        std::lock_guard const guard(mutex_);
        told_[{device, address}] = of.nbytes;
        return {};
    }
    auto const known = registered_.find_own(address);
    if (known && address - known->base + of.nbytes <= known->nbytes) {
        return {};
    }
    DIOMP_TRY(registered_.add(address, of.nbytes));
    exposed_.push_back(address);
    return {};
}

std::optional<std::uint64_t> variables::left_in(int device, std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto const after = told_.upper_bound({device, address});
    if (after == told_.begin()) {
        return std::nullopt;
    }
    auto const &[where, nbytes] = *std::prev(after);
    return where.first == device && address - where.second < nbytes
               ? std::optional(nbytes - (address - where.second))
               : std::nullopt;
}

} // namespace diomp::offload
