// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/composite.h"

#include <fmt/core.h>

namespace diomp::conduit {
namespace {

class composite final : public conduit {
public:
    composite(std::unique_ptr<conduit> near, std::unique_ptr<network> far,
              std::vector<bool> is_near)
        : near_(std::move(near)), far_(std::move(far)), is_near_(std::move(is_near)),
          name_(fmt::format("{}+{}", near_->abilities().name, far_->name())),
          abilities_(near_->abilities()) {
        abilities_.name = name_.c_str();
        abilities_.has_atomics = far_->has_atomics();
    }
    /// The network rings at `near_` until it is gone.
    ~composite() override { far_.reset(); }
    composite(const composite &) = delete;
    composite &operator=(const composite &) = delete;

    const capabilities &abilities() const override { return abilities_; }

    std::byte *direct_base(world_rank peer) const override {
        return is_near(peer) ? near_->direct_base(peer) : nullptr;
    }

    status put(world_rank peer, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override {
        return is_near(peer) ? near_->put(peer, remote_address, source, nbytes, source_free)
                             : far_->put(peer, remote_address, source, nbytes, source_free);
    }
    status get(world_rank peer, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override {
        return is_near(peer) ? near_->get(peer, remote_address, destination, nbytes, done)
                             : far_->get(peer, remote_address, destination, nbytes, done);
    }
    bool reaches(memory_kind kind) const override { return far_->reaches(kind); }
    bool reaches_range(const memory_range &own) const override { return far_->reaches_range(own); }
    bool works_between() const override { return far_->works_between(); }
    bool joins(world_rank peer, const memory_range &remote,
               const memory_range &local) const override {
        return far_->joins(peer, remote, local);
    }
    status put_between(world_rank peer, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, memory_ends ends, completion &source_free) override {
        return far_->put_between(peer, remote_address, source, nbytes, ends, source_free);
    }
    status get_between(world_rank peer, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, memory_ends ends, completion &done) override {
        return far_->get_between(peer, remote_address, destination, nbytes, ends, done);
    }
    void work_in(const device_scope &scope) override { far_->work_in(scope); }
    result<bool> put_rows(world_rank peer, std::uint64_t remote_address, const void *source,
                          const rows &shape, completion &source_free) override {
        return is_near(peer) ? near_->put_rows(peer, remote_address, source, shape, source_free)
                             : far_->put_rows(peer, remote_address, source, shape, source_free);
    }
    result<bool> get_rows(world_rank peer, std::uint64_t remote_address, void *destination,
                          const rows &shape, completion &done) override {
        return is_near(peer) ? near_->get_rows(peer, remote_address, destination, shape, done)
                             : far_->get_rows(peer, remote_address, destination, shape, done);
    }
    status atomic(world_rank peer, std::uint64_t remote_address, const atomic_call &call,
                  void *result, completion &done) override {
        return far_->atomic(peer, remote_address, call, result, done);
    }
    status flush(world_rank peer, completion &done) override {
        return is_near(peer) ? near_->flush(peer, done) : far_->flush(peer, done);
    }
    status flush_all(completion &done) override {
        DIOMP_TRY(near_->flush_all(done));
        return far_->flush_all(done);
    }

    status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                         std::size_t nbytes) override {
        return is_near(peer) ? near_->write_private(peer, remote_address, source, nbytes)
                             : no_attach();
    }
    status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes) override {
        return is_near(peer) ? near_->read_private(peer, remote_address, destination, nbytes)
                             : no_attach();
    }

    std::size_t max_message_bytes(world_rank peer) const override {
        return is_near(peer) ? near_->max_message_bytes(peer) : far_->max_message_bytes();
    }
    bool try_send(world_rank peer, handler_id handler,
                  std::span<const std::byte> payload) override {
        return is_near(peer) ? near_->try_send(peer, handler, payload)
                             : far_->try_send(peer, handler, payload);
    }
    result<bool> send_bulk(world_rank peer, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override {
        return is_near(peer) ? near_->send_bulk(peer, handler, payload, data, source_free)
                             : far_->send_bulk(peer, handler, payload, data, source_free);
    }
    result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override {
        return is_near(peer) ? near_->put_with_message(peer, remote_address, source, handler,
                                                       payload, source_free)
                             : far_->put_with_message(peer, remote_address, source, handler,
                                                      payload, source_free);
    }
    std::size_t sure_bulk_bytes(world_rank peer) const override {
        return is_near(peer) ? near_->sure_bulk_bytes(peer) : far_->sure_bulk_bytes();
    }
    void receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer) override {
        near_->receive_bulk_with(sink, placer);
        far_->receive_bulk_with(sink, placer);
    }
    void divert_bulk(const std::byte *place) override { far_->divert_bulk(place); }
    int poll(message_sink sink) override { return near_->poll(sink) + far_->poll(sink); }

    std::uint32_t activity() const override { return near_->activity(); }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        near_->sleep(seen, limit);
    }
    void wake() override {
        near_->wake();
        far_->wake_napping();
    }
    void begin_polling() override {
        near_->begin_polling();
        far_->begin_polling();
    }
    bool end_polling() override {
        far_->end_polling();
        bool const waiting = near_->end_polling();
        return waiting || far_->has_messages();
    }
    bool nap(awaited what, std::uint32_t seen, std::chrono::microseconds limit,
             function_ref<bool()> ready) override {
        bool is_ready = false;
        auto const is_over = [&] {
            is_ready = ready();
            return is_ready || near_->activity() != seen;
        };
        if (what == awaited::store || !far_->nap(limit, is_over)) {
            return near_->nap(what, seen, limit, ready);
        }
        return is_ready;
    }
    void wake_napping() override {
        near_->wake_napping();
        far_->wake_napping();
    }
    const std::atomic<std::uint32_t> &store_sleepers() const override {
        return near_->store_sleepers();
    }
    void wake_for_store(world_rank peer) override { near_->wake_for_store(peer); }

    void report_failures_to(const failure_sink &sink) override { far_->report_failures_to(sink); }
    std::string describe_path(world_rank peer) const override {
        return is_near(peer) ? near_->describe_path(peer) : far_->describe_path(peer);
    }
    std::string describe_outstanding() const override { return far_->describe_outstanding(); }
    status close() override {
        DIOMP_TRY(far_->close());
        return near_->close();
    }
    void freeze() override { far_->freeze(); }

private:
    [[nodiscard]] bool is_near(world_rank peer) const { return is_near_[peer.index()]; }
    static status no_attach() { return error(OMPX_ERR_UNSUPPORTED, "the peer is on another node"); }

    std::unique_ptr<conduit> near_;
    std::unique_ptr<network> far_;
    std::vector<bool> is_near_;
    std::string name_;
    capabilities abilities_;
};

} // namespace

std::unique_ptr<conduit> compose(std::unique_ptr<conduit> near, std::unique_ptr<network> far,
                                 std::vector<bool> is_near) {
    return std::make_unique<composite>(std::move(near), std::move(far), std::move(is_near));
}

} // namespace diomp::conduit
