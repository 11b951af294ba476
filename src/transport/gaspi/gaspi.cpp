// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/gaspi.h"

#include "transport/common/network_base.h"
#include "transport/gaspi/iface.h"

namespace diomp::transport::gaspi {
namespace {

/// GPI-2 has no descriptor to sleep on. While no thread polls, the network thread polls once per
/// interval, and less often after a while without traffic.
constexpr int idle_sleep_ms = 1;
constexpr int long_idle_sleep_ms = 4;
constexpr int idle_sleeps_before_long_ones = 500;

class gaspi_network final : public network_base {
public:
    gaspi_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_base(launcher, options, std::move(ring)) {}
    ~gaspi_network() override { stop_thread(); }
    gaspi_network(const gaspi_network &) = delete;
    gaspi_network &operator=(const gaspi_network &) = delete;

    status start(const arena &arena);

    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override {
        return iface_->put(rank, remote_address, source, nbytes, source_free);
    }
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override {
        return iface_->get(rank, remote_address, destination, nbytes, done);
    }
    status flush(world_rank rank, completion &done) override { return iface_->flush(rank, done); }
    status flush_all(completion &done) override { return iface_->flush_all(done); }
    bool try_send(world_rank rank, handler_id handler,
                  std::span<const std::byte> payload) override {
        return iface_->try_send(rank, handler, payload);
    }
    result<bool> put_with_message(world_rank rank, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override {
        return iface_->put_with_message(rank, remote_address, source, handler, payload,
                                        source_free);
    }
    /// Large messages use put_with_message, which needs no copy.
    result<bool> send_long(world_rank /*rank*/, handler_id /*handler*/,
                           std::span<const std::byte> /*payload*/,
                           std::span<const std::byte> /*data*/,
                           completion & /*source_free*/) override {
        return false;
    }
    int poll(message_handler sink) override {
        bool const moved = iface_->advance();
        int const handled = iface_->receiver().receive(sink);
        int const busy = dispatch(moved, sink); // GPI-2's messages do not pass through arrived()
        return handled == 0 ? busy : handled;
    }
    bool has_messages() const override { return iface_->receiver().has_messages(); }
    std::string describe_path(world_rank rank) const override {
        return iface_->describe_path(rank);
    }
    std::string describe_outstanding() const override { return iface_->describe_outstanding(); }

private:
    bool serve() override;
    int max_sleep_ms(int /*limit_ms*/) override {
        return num_idle_sleeps_ < idle_sleeps_before_long_ones ? idle_sleep_ms : long_idle_sleep_ms;
    }
    void ping(network_peer &silent) override { iface_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(iface_->peers());
    }
    std::string fail(network_peer &lost, const std::string &why) override {
        return iface_->fail(static_cast<peer &>(lost), why);
    }
    status drain() override;

    std::unique_ptr<iface> iface_;
    int num_idle_sleeps_ = 0; ///< consecutive; used by the network thread only
};

status gaspi_network::start(const arena &arena) {
    auto made = iface::create(launcher(), arena,
                              [this](peer &lost, const std::string &why) { fail_peer(lost, why); });
    DIOMP_TRY(made);
    iface_ = made.take();
    caps_.name = "gaspi";
    caps_.max_message_bytes = iface_->max_message_bytes();
    return start_thread(-1);
}

bool gaspi_network::serve() {
    bool const moved = iface_->advance();
    num_idle_sleeps_ = moved || has_messages() ? 0 : num_idle_sleeps_ + 1;
    return moved;
}

status gaspi_network::drain() {
    completion done;
    DIOMP_TRY(iface_->flush_all(done, true));
    advance_until([&] { return done.is_done(); }, [&] { return iface_->advance(); });
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<gaspi_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(arena));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::transport::gaspi
