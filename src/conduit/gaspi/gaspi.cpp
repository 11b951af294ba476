// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gaspi/gaspi.h"

#include "conduit/gaspi/traffic.h"
#include "conduit/network_frame.h"

namespace diomp::conduit::gaspi {
namespace {

/// GPI-2 offers nothing to sleep on: the network thread looks that often when nobody polls, less
/// often after a while without anything.
constexpr int nap_ms = 1;
constexpr int long_nap_ms = 4;
constexpr int naps_before_long_ones = 500;

class gaspi_network final : public network_frame {
public:
    gaspi_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_frame(launcher, options, std::move(ring)) {}
    ~gaspi_network() override { stop_thread(); }
    gaspi_network(const gaspi_network &) = delete;
    gaspi_network &operator=(const gaspi_network &) = delete;

    status start(const window &window);

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
    int poll(message_sink sink) override {
        note_poll();
        bool const moved = traffic_->advance();
        int const handled = traffic_->receive(sink);
        return handled == 0 && moved ? 1 : handled;
    }
    bool has_messages() const override { return traffic_->has_messages(); }
    std::string describe_path(world_rank rank) const override {
        return traffic_->describe_path(rank);
    }
    std::string describe_outstanding() const override { return traffic_->describe_outstanding(); }

private:
    bool serve() override;
    int choose_sleep(int /*limit_ms*/) override {
        return num_idle_naps_ < naps_before_long_ones ? nap_ms : long_nap_ms;
    }
    void ping(network_peer &silent) override { traffic_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(traffic_->peers());
    }
    std::string fail(network_peer &lost, const std::string &why) override {
        return traffic_->fail(static_cast<peer &>(lost), why);
    }
    status drain() override;

    std::unique_ptr<traffic> traffic_;
    int num_idle_naps_ = 0; ///< in a row; the network thread's
};

status gaspi_network::start(const window &window) {
    auto made = traffic::create(launcher(), window,
                                [this](peer &lost, const std::string &why) { lose(lost, why); });
    DIOMP_TRY(made);
    traffic_ = made.take();
    return start_thread(-1);
}

bool gaspi_network::serve() {
    bool const moved = traffic_->advance();
    num_idle_naps_ = moved || has_messages() ? 0 : num_idle_naps_ + 1;
    return moved;
}

status gaspi_network::drain() {
    completion done;
    DIOMP_TRY(traffic_->flush_all(done, true));
    advance_until([&] { return done.is_done(); }, [&] { return traffic_->advance(); });
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<gaspi_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(window));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::gaspi
