// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gaspi/gaspi.h"

#include "conduit/attendance.h"
#include "conduit/gaspi/traffic.h"
#include "conduit/network_thread.h"

#include <sched.h>

namespace diomp::conduit::gaspi {
namespace {

/// GPI-2 offers nothing to sleep on: the network thread looks that often when nobody polls, less
/// often after a while without anything.
constexpr int nap_ms = 1;
constexpr int long_nap_ms = 4;
constexpr int naps_before_long_ones = 500;

class gaspi_network final : public network {
public:
    gaspi_network(launch::launcher &launcher, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)) {}

    status start(const window &window, const conduit_options &options);

    const char *name() const override { return "gaspi"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override {
        return traffic_->put(rank, remote_address, source, nbytes, source_free);
    }
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override {
        return traffic_->get(rank, remote_address, destination, nbytes, done);
    }
    status flush(world_rank rank, completion &done) override { return traffic_->flush(rank, done); }
    status flush_all(completion &done) override { return traffic_->flush_all(done); }
    std::size_t max_message_bytes() const override { return traffic_->max_message_bytes(); }
    bool try_send(world_rank rank, handler_id handler,
                  std::span<const std::byte> payload) override {
        return traffic_->try_send(rank, handler, payload);
    }
    result<bool> put_with_message(world_rank rank, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override {
        return traffic_->put_with_message(rank, remote_address, source, handler, payload,
                                          source_free);
    }
    /// Large letters take the way of puts, which need no copy.
    result<bool> send_bulk(world_rank /*rank*/, handler_id /*handler*/,
                           std::span<const std::byte> /*payload*/,
                           std::span<const std::byte> /*data*/,
                           completion & /*source_free*/) override {
        return false;
    }
    void receive_bulk_with(const bulk_sink & /*sink*/, const bulk_placer & /*placer*/) override {}
    int poll(message_sink sink) override {
        attendance_.note_poll();
        bool const moved = traffic_->advance();
        int const handled = traffic_->receive(sink);
        return handled == 0 && moved ? 1 : handled;
    }
    void begin_polling() override { attendance_.begin(); }
    void end_polling() override {
        attendance_.end();
        thread_->nudge();
    }
    bool has_messages() const override { return traffic_->has_messages(); }
    void report_failures_to(const failure_sink &sink) override {
        traffic_->report_failures_to(sink);
    }
    std::string describe_path(world_rank rank) const override {
        return traffic_->describe_path(rank);
    }
    std::string describe_outstanding() const override { return traffic_->describe_outstanding(); }
    status close() override;

private:
    bool serve();
    int watch();

    launch::launcher &launcher_;
    doorbell ring_;
    std::unique_ptr<traffic> traffic_;
    attendance attendance_;
    int num_idle_naps_ = 0;                  ///< in a row; the network thread's
    std::unique_ptr<network_thread> thread_; ///< last: it uses all of the above
};

status gaspi_network::start(const window &window, const conduit_options &options) {
    auto made = traffic::create(launcher_, window, options);
    DIOMP_TRY(made);
    traffic_ = made.take();
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] { return serve(); };
    work.arm = [] { return true; };
    work.watch = [this] { return watch(); };
    auto started = network_thread::start(-1, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

bool gaspi_network::serve() {
    bool const moved = traffic_->advance();
    bool const came = traffic_->has_messages();
    if (came) {
        ring_(); // somebody may be napping until it has come
    }
    num_idle_naps_ = moved || came ? 0 : num_idle_naps_ + 1;
    return moved;
}

int gaspi_network::watch() {
    traffic_->watch_peers();
    return num_idle_naps_ < naps_before_long_ones ? nap_ms : long_nap_ms;
}

status gaspi_network::close() {
    completion done;
    DIOMP_TRY(traffic_->flush_all(done, true));
    while (!done.is_done()) {
        if (!traffic_->advance()) {
            ::sched_yield();
        }
    }
    if (done.failure.load() != 0) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had everything");
    }
    // From here on peers may end before us, which is no failure.
    report_failures_to({});
    return launcher_.fence();
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<gaspi_network>(launcher, std::move(ring));
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::gaspi
