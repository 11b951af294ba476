// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/composite.h"

#include <fmt/core.h>

namespace diomp::transport {
namespace {

class composite final : public conduit {
public:
    composite(std::unique_ptr<conduit> intra_node, std::unique_ptr<network> inter_node,
              std::vector<bool> is_intra_node)
        : intra_node_(std::move(intra_node)), inter_node_(std::move(inter_node)),
          is_intra_node_(std::move(is_intra_node)),
          name_(fmt::format("{}+{}", intra_node_->caps().name, inter_node_->name())),
          caps_(intra_node_->caps()) {
        caps_.name = name_.c_str();
        caps_.has_atomics = inter_node_->has_atomics();
    }
    /// The network calls the doorbell of `intra_node_` until it is destroyed.
    ~composite() override { inter_node_.reset(); }
    composite(const composite &) = delete;
    composite &operator=(const composite &) = delete;

    const capabilities &caps() const override { return caps_; }

    std::byte *direct_base(world_rank peer) const override {
        return is_intra_node(peer) ? intra_node_->direct_base(peer) : nullptr;
    }

    status put(world_rank peer, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override {
        return is_intra_node(peer)
                   ? intra_node_->put(peer, remote_address, source, nbytes, source_free)
                   : inter_node_->put(peer, remote_address, source, nbytes, source_free);
    }
    status get(world_rank peer, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override {
        return is_intra_node(peer)
                   ? intra_node_->get(peer, remote_address, destination, nbytes, done)
                   : inter_node_->get(peer, remote_address, destination, nbytes, done);
    }
    bool supports_memory_kind(memory_kind kind) const override {
        return inter_node_->supports_memory_kind(kind);
    }
    bool supports_memory_range(const memory_range &own) const override {
        return inter_node_->supports_memory_range(own);
    }
    bool supports_device_transfers() const override {
        return inter_node_->supports_device_transfers();
    }
    bool can_transfer(world_rank peer, const memory_range &remote,
                      const memory_range &local) const override {
        return inter_node_->can_transfer(peer, remote, local);
    }
    status put_device_memory(world_rank peer, std::uint64_t remote_address, const void *source,
                             std::size_t nbytes, memory_kinds kinds,
                             completion &source_free) override {
        return inter_node_->put_device_memory(peer, remote_address, source, nbytes, kinds,
                                              source_free);
    }
    status get_device_memory(world_rank peer, std::uint64_t remote_address, void *destination,
                             std::size_t nbytes, memory_kinds kinds, completion &done) override {
        return inter_node_->get_device_memory(peer, remote_address, destination, nbytes, kinds,
                                              done);
    }
    void bind_device_context(const device_context_binder &binder) override {
        inter_node_->bind_device_context(binder);
    }
    result<bool> put_rows(world_rank peer, std::uint64_t remote_address, const void *source,
                          const rows &shape, completion &source_free) override {
        return is_intra_node(peer)
                   ? intra_node_->put_rows(peer, remote_address, source, shape, source_free)
                   : inter_node_->put_rows(peer, remote_address, source, shape, source_free);
    }
    result<bool> get_rows(world_rank peer, std::uint64_t remote_address, void *destination,
                          const rows &shape, completion &done) override {
        return is_intra_node(peer)
                   ? intra_node_->get_rows(peer, remote_address, destination, shape, done)
                   : inter_node_->get_rows(peer, remote_address, destination, shape, done);
    }
    status atomic(world_rank peer, std::uint64_t remote_address, const atomic_call &call,
                  void *result, completion &done) override {
        return inter_node_->atomic(peer, remote_address, call, result, done);
    }
    status flush(world_rank peer, completion &done) override {
        return is_intra_node(peer) ? intra_node_->flush(peer, done)
                                   : inter_node_->flush(peer, done);
    }
    status flush_all(completion &done) override {
        DIOMP_TRY(intra_node_->flush_all(done));
        return inter_node_->flush_all(done);
    }

    status write_private(world_rank peer, std::uint64_t remote_address, const void *source,
                         std::size_t nbytes) override {
        return is_intra_node(peer)
                   ? intra_node_->write_private(peer, remote_address, source, nbytes)
                   : no_attach();
    }
    status read_private(world_rank peer, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes) override {
        return is_intra_node(peer)
                   ? intra_node_->read_private(peer, remote_address, destination, nbytes)
                   : no_attach();
    }

    std::size_t max_message_bytes(world_rank peer) const override {
        return is_intra_node(peer) ? intra_node_->max_message_bytes(peer)
                                   : inter_node_->max_message_bytes();
    }
    bool try_send(world_rank peer, handler_id handler,
                  std::span<const std::byte> payload) override {
        return is_intra_node(peer) ? intra_node_->try_send(peer, handler, payload)
                                   : inter_node_->try_send(peer, handler, payload);
    }
    result<bool> send_long(world_rank peer, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override {
        return is_intra_node(peer)
                   ? intra_node_->send_long(peer, handler, payload, data, source_free)
                   : inter_node_->send_long(peer, handler, payload, data, source_free);
    }
    result<bool> put_with_message(world_rank peer, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override {
        return is_intra_node(peer) ? intra_node_->put_with_message(peer, remote_address, source,
                                                                   handler, payload, source_free)
                                   : inter_node_->put_with_message(peer, remote_address, source,
                                                                   handler, payload, source_free);
    }
    std::size_t max_am_long(world_rank peer) const override {
        return is_intra_node(peer) ? intra_node_->max_am_long(peer) : inter_node_->max_am_long();
    }
    void set_am_long_handler(const am_long_handler &handle,
                             const recv_buffer_callback &find_buffer) override {
        intra_node_->set_am_long_handler(handle, find_buffer);
        inter_node_->set_am_long_handler(handle, find_buffer);
    }
    void revoke_recv_buffer(const std::byte *buffer) override {
        inter_node_->revoke_recv_buffer(buffer);
    }
    int poll(message_handler handle) override {
        return intra_node_->poll(handle) + inter_node_->poll(handle);
    }

    std::uint32_t activity() const override { return intra_node_->activity(); }
    void sleep(std::uint32_t seen, std::chrono::microseconds limit) override {
        intra_node_->sleep(seen, limit);
    }
    void wake() override {
        intra_node_->wake();
        inter_node_->wake_idle_waiters();
    }
    void begin_polling() override {
        intra_node_->begin_polling();
        inter_node_->begin_polling();
    }
    bool end_polling() override {
        inter_node_->end_polling();
        bool const waiting = intra_node_->end_polling();
        return waiting || inter_node_->has_messages();
    }
    bool idle_wait(wait_kind what, std::uint32_t seen, std::chrono::microseconds limit,
                   function_ref<bool()> ready) override {
        bool is_ready = false;
        auto const is_over = [&] {
            is_ready = ready();
            return is_ready || intra_node_->activity() != seen;
        };
        if (what == wait_kind::store || !inter_node_->idle_wait(limit, is_over)) {
            return intra_node_->idle_wait(what, seen, limit, ready);
        }
        return is_ready;
    }
    void wake_idle_waiters() override {
        intra_node_->wake_idle_waiters();
        inter_node_->wake_idle_waiters();
    }
    const std::atomic<std::uint32_t> &store_sleepers() const override {
        return intra_node_->store_sleepers();
    }
    void wake_for_store(world_rank peer) override { intra_node_->wake_for_store(peer); }

    void report_failures_to(const failure_handler &handle) override {
        inter_node_->report_failures_to(handle);
    }
    std::string describe_path(world_rank peer) const override {
        return is_intra_node(peer) ? intra_node_->describe_path(peer)
                                   : inter_node_->describe_path(peer);
    }
    std::string describe_outstanding() const override {
        return inter_node_->describe_outstanding();
    }
    status close() override {
        DIOMP_TRY(inter_node_->close());
        return intra_node_->close();
    }
    void freeze() override { inter_node_->freeze(); }

private:
    [[nodiscard]] bool is_intra_node(world_rank peer) const { return is_intra_node_[peer.index()]; }
    static status no_attach() { return error(OMPX_ERR_UNSUPPORTED, "the peer is on another node"); }

    std::unique_ptr<conduit> intra_node_;
    std::unique_ptr<network> inter_node_;
    std::vector<bool> is_intra_node_;
    std::string name_;
    capabilities caps_;
};

} // namespace

std::unique_ptr<conduit> compose(std::unique_ptr<conduit> intra_node,
                                 std::unique_ptr<network> inter_node,
                                 std::vector<bool> is_intra_node) {
    return std::make_unique<composite>(std::move(intra_node), std::move(inter_node),
                                       std::move(is_intra_node));
}

} // namespace diomp::transport
