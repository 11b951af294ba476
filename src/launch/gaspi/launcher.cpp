// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gaspi/launcher.h"

#include "launch/fence_wait.h"
#include "launch/gaspi/kv_area.h"
#include "launch/gaspi/process.h"
#include "launch/host.h"
#include "launch/same_node.h"

#include <fmt/format.h>

#include <GASPI.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace diomp::launch::gaspi {
namespace {

using clock = std::chrono::steady_clock;

constexpr auto kv_area_id = static_cast<gaspi_segment_id_t>(segment::kv_area);
constexpr gaspi_timeout_t transfer_timeout_ms = 30'000;
constexpr std::chrono::seconds liveness_interval{2};

class gaspi_launcher final : public launcher {
public:
    [[nodiscard]] const job_info &info() const override { return info_; }
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "gaspi"; }

    status start(int rank, int size) {
        limits_ = fence_limits::from([](const char *name) { return std::getenv(name); });
        info_.rank = world_rank(rank);
        info_.size = size;
        info_.host = host_name();
        kv_areas_.resize(static_cast<std::size_t>(size));
        return agree_on_job(*this, info_, node_identity());
    }

    status put(std::string_view key, std::string_view value) override {
        std::lock_guard const guard(mutex_);
        if (find_value(own_area(), key)) {
            return error(OMPX_ERR_STATE, fmt::format("'{}' has been published already", key));
        }
        if (!append_value(own_area(), key, value)) {
            return error(
                OMPX_ERR_NOMEM,
                fmt::format("no space left to publish {} bytes under '{}'", value.size(), key),
                "start the job with diomp-run");
        }
        return {};
    }

    result<std::string> get(world_rank owner, std::string_view key) override {
        std::lock_guard const guard(mutex_);
        auto &known = kv_areas_[owner.index()];
        if (owner == info_.rank) {
            known.assign(own_area().begin(), own_area().end());
        }
        auto found = find_value(known, key);
        if (!found && owner != info_.rank) { // it may have been put since the last read
            DIOMP_TRY(read_kv_area(owner));
            found = find_value(known, key);
        }
        if (!found) {
            return error(OMPX_ERR_STATE,
                         fmt::format("rank {} has published no '{}'", owner.value(), key));
        }
        return *std::move(found);
    }

    status fence() override {
        round_ ^= 1U;
        unsigned step = 0;
        for (int distance = 1; distance < info_.size; distance *= 2, ++step) {
            int const to = (info_.rank.value() + distance) % info_.size;
            int const from = (info_.rank.value() - distance + info_.size) % info_.size;
            auto const id = static_cast<gaspi_notification_id_t>(info_.size) + 2 * step + round_;
            {
                std::lock_guard const guard(mutex_);
                DIOMP_TRY(finish(gaspi_notify(kv_area_id, static_cast<gaspi_rank_t>(to), id, 1,
                                              launcher_queue, transfer_timeout_ms),
                                 to));
            }
            DIOMP_TRY(wait_for_notification(id, from));
        }
        return {};
    }

    /// A connection that closes drops data that the peer's GPI-2 has not read yet. So a rank ends
    /// only after its notifications of the last fence have arrived.
    status finalize() override {
        DIOMP_TRY(fence());
        std::lock_guard const guard(mutex_);
        for (int distance = 1; distance < info_.size; distance *= 2) {
            auto const to = static_cast<gaspi_rank_t>((info_.rank.value() + distance) % info_.size);
            constexpr gaspi_timeout_t limit_ms = 1000; // the peer may have ended, which is no error
            gaspi_read(kv_area_id, read_buffer_offset(), to, kv_area_id, 0, kv_header_bytes,
                       launcher_queue, limit_ms);
            if (gaspi_wait(launcher_queue, limit_ms) != GASPI_SUCCESS) {
                break;
            }
        }
        return {};
    }

    /// Kills all other ranks: gaspi_run would wait for them.
    void abort(int code, std::string_view /*message*/) noexcept override {
        for (int peer = 0; peer < info_.size; ++peer) {
            if (peer != info_.rank.value()) {
                kill(peer);
            }
        }
        std::_Exit(code);
    }

private:
    static std::span<std::byte> own_area() { return kv_area().first(kv_area().size() / 2); }
    static std::span<std::byte> read_buffer() { return kv_area().subspan(kv_area().size() / 2); }
    static gaspi_offset_t read_buffer_offset() { return kv_area().size() / 2; }

    /// Waits for the operation on the queue whose start returned `code`.
    static status finish(gaspi_return_t code, int peer) {
        if (code == GASPI_SUCCESS) {
            code = gaspi_wait(launcher_queue, transfer_timeout_ms);
        }
        if (code != GASPI_SUCCESS) {
            return gaspi_error(fmt::format("transfer to or from rank {}", peer), code);
        }
        return {};
    }

    static status read(int peer, std::size_t nbytes) {
        return finish(gaspi_read(kv_area_id, read_buffer_offset(), static_cast<gaspi_rank_t>(peer),
                                 kv_area_id, 0, nbytes, launcher_queue, transfer_timeout_ms),
                      peer);
    }

    status read_kv_area(world_rank owner) {
        DIOMP_TRY(read(owner.value(), kv_header_bytes));
        std::size_t const used = std::min(used_bytes(read_buffer()), read_buffer().size());
        if (used > 0) {
            DIOMP_TRY(read(owner.value(), used));
        }
        kv_areas_[owner.index()].assign(read_buffer().begin(), read_buffer().first(used).end());
        return {};
    }

    /// Waits for a notification of a rank. OMPX_ERR_PEER if the rank ends before.
    status wait_for_notification(gaspi_notification_id_t id, int from) const {
        constexpr int num_yields = 1000;
        auto last_check = clock::now();
        fence_wait waiting(limits_, fmt::format("rank {}", from));
        gaspi_notification_id_t first = 0;
        for (int i = 0;
             gaspi_notify_waitsome(kv_area_id, id, 1, &first, GASPI_TEST) != GASPI_SUCCESS; ++i) {
            if (i < num_yields) {
                std::this_thread::yield();
                continue;
            }
            std::this_thread::sleep_for(std::chrono::microseconds{200});
            if (clock::now() - last_check > liveness_interval) {
                last_check = clock::now();
                if (!is_alive(from)) {
                    return error(OMPX_ERR_PEER,
                                 fmt::format("rank {} has ended without a notification", from));
                }
                DIOMP_TRY(waiting.check());
            }
        }
        gaspi_notification_t value = 0;
        gaspi_notify_reset(kv_area_id, id, &value);
        return {};
    }

    job_info info_;
    fence_limits limits_;
    std::mutex mutex_; ///< queue, read buffer and kv_areas_; not held while a fence waits
    std::vector<std::vector<std::byte>> kv_areas_; ///< [world rank], as last read
    unsigned round_ = 0; ///< alternates between two notifications per step
};

result<int> number_from(const environment &lookup, const char *variable) {
    std::string_view const text(lookup(variable));
    int value = 0;
    auto const parsed = std::from_chars(text.begin(), text.end(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.end() || value < 0) {
        return error(OMPX_ERR_ARG, fmt::format("{}={} is not a number", variable, text),
                     "start the program with gaspi_run, or unset GASPI_RANK and GASPI_NRANKS");
    }
    return value;
}

} // namespace

bool present(const environment &lookup) {
    return lookup("GASPI_RANK") != nullptr && lookup("GASPI_NRANKS") != nullptr;
}

result<std::unique_ptr<launcher>> join(const environment &lookup) {
    auto rank = number_from(lookup, "GASPI_RANK");
    DIOMP_TRY(rank);
    auto size = number_from(lookup, "GASPI_NRANKS");
    DIOMP_TRY(size);
    if (rank.value() >= size.value()) {
        return error(OMPX_ERR_ARG,
                     fmt::format("GASPI_RANK={} of GASPI_NRANKS={}", rank.value(), size.value()));
    }
    DIOMP_TRY(start_by_environment(rank.value(), size.value()));
    auto joined = std::make_unique<gaspi_launcher>();
    DIOMP_TRY(joined->start(rank.value(), size.value()));
    return std::unique_ptr<launcher>(std::move(joined));
}

} // namespace diomp::launch::gaspi
