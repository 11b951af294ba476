// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime in a session of a remote device: the calls of its regions.
#include "api/internal/session.h"

#include "api/internal/last_error.h"
#include "api/internal/state.h"
#include "base/log_setup.h"
#include "launch/host.h"
#include "launch/launch.h"
#include "launch/same_node.h"
#include "memory/layout.h"
#include "memory/memory.h"
#include "memory/static_pages.h"
#include "messaging/engine.h"
#include "rma/rma.h"
#include "runtime/collective_allocator.h"
#include "runtime/runtime.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

const diomp_session *diomp::api::g_session = nullptr;

namespace {

using diomp::error;
using diomp::result;
using diomp::status;
using diomp::world_rank;

constexpr const char *in_world_key = "session.rank in world";

/// The launcher that the session provides.
class session_launcher final : public diomp::launch::launcher {
public:
    explicit session_launcher(const diomp_session &session) : session_(session) {
        info_.rank = world_rank(session.rank);
        info_.size = session.size;
        info_.host = diomp::launch::host_name();
    }

    /// Determines the ranks of this node. Collective; blocks.
    status start() {
        DIOMP_TRY(put(in_world_key, std::to_string(session_.rank_in_world)));
        return diomp::launch::agree_on_job(*this, info_, session_.node);
    }

    [[nodiscard]] const diomp::launch::job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        return outcome(
            session_.put(session_.launcher, key.data(), key.size(), value.data(), value.size()));
    }
    status fence() override { return outcome(session_.fence(session_.launcher)); }
    result<std::string> get(world_rank owner, std::string_view key) override {
        std::string value;
        auto const take = [](void *into, const char *bytes, std::size_t nbytes) {
            static_cast<std::string *>(into)->assign(bytes, nbytes);
        };
        if (session_.get(session_.launcher, owner.value(), key.data(), key.size(), take, &value) !=
            0) {
            return error(OMPX_ERR_STATE,
                         fmt::format("rank {} has published no '{}'", owner.value(), key));
        }
        return value;
    }
    status finalize() override { return {}; }
    void abort(int /*code*/, std::string_view /*message*/) noexcept override {}
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "device service"; }

private:
    static status outcome(int code) {
        return code == 0 ? status() : error(OMPX_ERR_PEER, "the client of the session is gone");
    }

    const diomp_session &session_;
    diomp::launch::job_info info_;
};

using diomp::api::g_session;

void report(const char *function, const std::string &arguments, const error &failure) {
    g_session->report(g_session->errors, failure.code(), function, arguments.c_str(),
                      failure.message().c_str(), failure.remedy().c_str());
}

/// The memory of the devices becomes part of the segments of this node: other ranks reach it as
/// symmetric memory, and not by messages to its owner.
status map_into_segments(const diomp_session &session, diomp::runtime::runtime &running) {
    auto const page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto block = running.allocator().allocate(OMPX_MEM_SYMMETRIC, session.memory_bytes, page_bytes);
    DIOMP_TRY(block);
    std::uint64_t const offset =
        diomp::memory::internal_bytes + *running.space().own_offset(block.value());
    for (world_rank const each : running.job().local_ranks) {
        auto in_world = running.connection().launcher().get(each, in_world_key);
        DIOMP_TRY(in_world);
        std::byte *const there = running.connection().arena().slot(each) + offset;
        if (session.map(session.world, std::stoi(in_world.value()), there) != 0) {
            return error(OMPX_ERR_SYSTEM, "mapping the memory of a device once more failed");
        }
    }
    diomp::memory::note_shared_pages(
        {reinterpret_cast<std::uintptr_t>(session.memory), session.memory_bytes}, offset);
    return {};
}

status start(const diomp_session &session) {
    if (session.version != DIOMP_SESSION_TABLE_VERSION) {
        return error(OMPX_ERR_STATE, "the device service and libdiomp.so are of different versions",
                     "install both from the same build");
    }
    g_session = &session;
    diomp::api::observe_errors(report);
    auto launcher = std::make_unique<session_launcher>(session);
    DIOMP_TRY(launcher->start());
    DIOMP_TRY(diomp::api::start_runtime(std::move(launcher)));
    diomp::runtime::runtime &running = *diomp::api::g_runtime.load();
    diomp::api::use_groups_of_host(running);
    if (session.plugin != nullptr) {
        diomp::api::use_gpu_of_session(running);
        return {};
    }
    if (session.map != nullptr) {
        DIOMP_TRY(map_into_segments(session, running));
    }
    return running.allocator().register_symmetric(session.memory, session.memory_bytes);
}

} // namespace

extern "C" {

[[gnu::visibility("default")]] const char *diomp_session_start(const diomp_session *session,
                                                               int log_descriptor) noexcept;
const char *diomp_session_start(const diomp_session *session, int log_descriptor) noexcept {
    static std::array<char, 512> failure; // the library has no static object with a destructor
    diomp::set_log_descriptor(log_descriptor);
    status const started = start(*session);
    diomp::set_log_descriptor(STDERR_FILENO);
    if (started) {
        return nullptr;
    }
    std::snprintf(failure.data(), failure.size(), "%s", started.failure().message().c_str());
    return failure.data();
}

[[gnu::visibility("default")]] void diomp_session_fence(void) noexcept;
void diomp_session_fence(void) noexcept {
    diomp::runtime::runtime *const running = diomp::api::g_runtime.load();
    if (running == nullptr) {
        return;
    }
    if (status const done = running->transfers().fence(); !done) {
        diomp::api::fail("target region", "end", done.failure());
    }
}

[[gnu::visibility("default")]] void diomp_session_lost(int32_t rank_in_world) noexcept;
void diomp_session_lost(int32_t rank_in_world) noexcept {
    diomp::runtime::runtime *const running = diomp::api::g_runtime.load();
    if (running == nullptr) {
        return;
    }
    for (world_rank const each : running->job().local_ranks) {
        auto in_world = running->connection().launcher().get(each, in_world_key);
        if (in_world && in_world.value() == std::to_string(rank_in_world)) {
            running->connection().engine().fail_waits(
                fmt::format("rank {}: its session on this host has ended", each.value()));
        }
    }
}

} // extern "C"
