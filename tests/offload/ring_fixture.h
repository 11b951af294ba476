// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A ring of requests between threads of a test, which run the code of GPUs, and a proxy.
#pragma once

#include "diomp/device_calls.h"
#include "offload/internal/region_error.h"
#include "offload/internal/request_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace ring_tests {

/// A device without mapped memory, whose one ring has 8 slots.
class ring_fixture : public testing::Test {
protected:
    static constexpr unsigned slot_bits = 3;
    static constexpr std::uint64_t num_slots = 8;

    ring_fixture() {
        own_.version = DIOMP_ENDPOINT_VERSION;
        own_.num_ranks = 2;
        own_.base = address(mine_.data());
        own_.segment_bytes = mine_.size();
        own_.symmetric_end = mine_.size();
        own_.mapped_begin = mine_.size();
        own_.peers = peers_.data();
        own_.broken = &broken_;
        own_.error = &error_;
        own_.rings = &on_device_;
        own_.num_rings = 1;
        on_device_ = ring_.describe(busy_.data());
        peers_[0] = {own_.base, ~std::uint64_t{0}, 0, 0};
    }

    static std::uint64_t address(const void *at) { return reinterpret_cast<std::uintptr_t>(at); }
    /// The message of the error that the device has stored; "" if none.
    std::string message() {
        if (error_.written != error_.taken + 1) {
            return "";
        }
        auto const found = diomp::offload::describe_region_error(error_, 4, own_.num_ranks);
        ++error_.taken;
        return std::string(found.function) + "(" + found.arguments + "): " + found.why.message();
    }

    alignas(64) std::array<char, 4096> mine_{};
    std::array<diomp_peer, 2> peers_{};
    std::int32_t broken_ = 0;
    diomp_device_error error_{};
    alignas(
        64) std::array<std::byte, diomp::offload::request_ring::memory_bytes(slot_bits)> memory_{};
    std::array<std::uint64_t, num_slots> busy_{};
    diomp::offload::request_ring ring_{memory_.data(), slot_bits};
    diomp_ring on_device_{};
    diomp_endpoint own_{};
};

/// Runs `serve` in a thread, again and again, until it is destroyed.
template <typename Serve>
class proxy_thread {
public:
    explicit proxy_thread(Serve serve)
        : thread_([this, serve] {
              while (!stopping_.load(std::memory_order_relaxed)) {
                  if (!serve()) {
                      std::this_thread::yield();
                  }
              }
          }) {}
    ~proxy_thread() {
        stopping_.store(true, std::memory_order_relaxed);
        thread_.join();
    }
    proxy_thread(const proxy_thread &) = delete;
    proxy_thread &operator=(const proxy_thread &) = delete;

private:
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

inline void run_threads(int num, const std::function<void(int)> &body) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(num));
    for (int i = 0; i < num; ++i) {
        threads.emplace_back(body, i);
    }
    for (std::thread &each : threads) {
        each.join();
    }
}

} // namespace ring_tests
