// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/binding.h"

#include <fmt/core.h>

#include <limits>
#include <set>

namespace diomp::device {
namespace {

constexpr int unknown_distance = std::numeric_limits<int>::max();

/// Assigns devices. With S assignments on D devices, each device has S / D ranks, and S % D
/// devices, chosen by the first ranks, have one more.
class device_assignment {
public:
    explicit device_assignment(const binding_request &request)
        : request_(request), num_ranks_of_(request.device_nodes.size(), 0),
          devices_of_rank_(request.rank_nodes.size()) {
        int const num_assignments =
            static_cast<int>(request.rank_nodes.size()) * request.devices_per_rank;
        int const devices = static_cast<int>(num_ranks_of_.size());
        ranks_per_device_ = num_assignments / devices;
        num_with_one_more_ = num_assignments % devices;
    }

    std::vector<std::vector<int>> assign() {
        for (int const distance : all_distances()) {
            for (std::size_t rank = 0; rank < devices_of_rank_.size(); ++rank) {
                while (assign_one(rank, distance)) {
                }
            }
        }
        return std::move(devices_of_rank_);
    }

private:
    [[nodiscard]] int distance(std::size_t rank, std::size_t device) const {
        int const from = request_.rank_nodes[rank];
        int const to = request_.device_nodes[device];
        return from < 0 || to < 0 ? unknown_distance : request_.distance(from, to);
    }

    [[nodiscard]] std::set<int> all_distances() const {
        std::set<int> all;
        for (std::size_t rank = 0; rank < devices_of_rank_.size(); ++rank) {
            for (std::size_t device = 0; device < num_ranks_of_.size(); ++device) {
                all.insert(distance(rank, device));
            }
        }
        return all;
    }

    /// Assigns one more device at this distance to the rank. False if the rank has enough or none
    /// is left.
    bool assign_one(std::size_t rank, int at_distance) {
        if (devices_of_rank_[rank].size() == static_cast<std::size_t>(request_.devices_per_rank)) {
            return false;
        }
        std::size_t best = num_ranks_of_.size();
        for (std::size_t device = 0; device < num_ranks_of_.size(); ++device) {
            int const limit = ranks_per_device_ + (num_with_one_more_ > 0 ? 1 : 0);
            if (distance(rank, device) == at_distance && num_ranks_of_[device] < limit &&
                (best == num_ranks_of_.size() || num_ranks_of_[device] < num_ranks_of_[best])) {
                best = device;
            }
        }
        if (best == num_ranks_of_.size()) {
            return false;
        }
        num_with_one_more_ -= num_ranks_of_[best] == ranks_per_device_ ? 1 : 0;
        ++num_ranks_of_[best];
        devices_of_rank_[rank].push_back(static_cast<int>(best));
        return true;
    }

    const binding_request &request_;
    std::vector<int> num_ranks_of_; ///< [device] ranks assigned to it
    std::vector<std::vector<int>> devices_of_rank_;
    int ranks_per_device_ = 0;
    int num_with_one_more_ = 0; ///< devices that may still get one more rank than the others
};

std::string remedy(std::size_t ranks, std::size_t devices) {
    std::size_t const max_per_rank = devices / ranks;
    std::string const fewer =
        max_per_rank >= 2
            ? fmt::format("pass --devices-per-rank (DIOMP_DEVICES_PER_RANK) {} or less",
                          max_per_rank)
            : "pass --devices-per-rank (DIOMP_DEVICES_PER_RANK) 1, so that ranks share devices";
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
    return device_assignment(request).assign();
}

} // namespace diomp::device
