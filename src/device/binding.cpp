// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/binding.h"

#include <fmt/core.h>

#include <limits>
#include <set>

namespace diomp::device {
namespace {

constexpr int not_known = std::numeric_limits<int>::max();

/// Hands out devices. With S places on D devices each has S / D of them, and S % D devices, to be
/// chosen by the ranks that come first, have one more.
class allotment {
public:
    explicit allotment(const binding_request &request)
        : request_(request), loads_(request.device_nodes.size(), 0),
          rows_(request.rank_nodes.size()) {
        int const places = static_cast<int>(request.rank_nodes.size()) * request.devices_per_rank;
        int const devices = static_cast<int>(loads_.size());
        share_ = places / devices;
        num_extra_ = places % devices;
    }

    std::vector<std::vector<int>> run() {
        for (int const distance : all_distances()) {
            for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
                while (take(rank, distance)) {
                }
            }
        }
        return std::move(rows_);
    }

private:
    [[nodiscard]] int distance(std::size_t rank, std::size_t device) const {
        int const from = request_.rank_nodes[rank];
        int const to = request_.device_nodes[device];
        return from < 0 || to < 0 ? not_known : request_.distance(from, to);
    }

    [[nodiscard]] std::set<int> all_distances() const {
        std::set<int> all;
        for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
            for (std::size_t device = 0; device < loads_.size(); ++device) {
                all.insert(distance(rank, device));
            }
        }
        return all;
    }

    /// One more device for the rank, of this distance. False if it has enough or none is left.
    bool take(std::size_t rank, int at_distance) {
        if (rows_[rank].size() == static_cast<std::size_t>(request_.devices_per_rank)) {
            return false;
        }
        std::size_t best = loads_.size();
        for (std::size_t device = 0; device < loads_.size(); ++device) {
            int const limit = share_ + (num_extra_ > 0 ? 1 : 0);
            if (distance(rank, device) == at_distance && loads_[device] < limit &&
                (best == loads_.size() || loads_[device] < loads_[best])) {
                best = device;
            }
        }
        if (best == loads_.size()) {
            return false;
        }
        num_extra_ -= loads_[best] == share_ ? 1 : 0;
        ++loads_[best];
        rows_[rank].push_back(static_cast<int>(best));
        return true;
    }

    const binding_request &request_;
    std::vector<int> loads_; ///< [device] ranks that have it
    std::vector<std::vector<int>> rows_;
    int share_ = 0;
    int num_extra_ = 0; ///< devices that may still have one more than the share
};

std::string remedy(std::size_t ranks, std::size_t devices) {
    std::size_t const most = devices / ranks;
    std::string const fewer =
        most >= 2 ? fmt::format("pass --devices-per-rank (DIOMP_DEVICES_PER_RANK) {} or less", most)
                  : "pass --devices-per-rank (DIOMP_DEVICES_PER_RANK) 1, with which ranks share";
    return fewer + ", or start fewer ranks per node";
}

} // namespace

result<std::vector<std::vector<int>>> bind_devices(const binding_request &request) {
    std::size_t const ranks = request.rank_nodes.size();
    std::size_t const devices = request.device_nodes.size();
    if (devices == 0 || ranks == 0 || request.devices_per_rank < 1) {
        return error(OMPX_ERR_ARG, fmt::format("{} ranks, {} devices, {} per rank: nothing to bind",
                                               ranks, devices, request.devices_per_rank));
    }
    auto const each = static_cast<std::size_t>(request.devices_per_rank);
    if (each > 1 && each > devices / ranks) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} rank{} on this node with {} devices each: {} device{} here",
                                 ranks, ranks == 1 ? "" : "s", each, devices,
                                 devices == 1 ? " is" : "s are"),
                     remedy(ranks, devices));
    }
    return allotment(request).run();
}

} // namespace diomp::device
