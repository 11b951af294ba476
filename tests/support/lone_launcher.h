// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launcher for one process that is a rank of a job whose other ranks do not exist.
#pragma once

#include "launch/launch.h"

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace diomp::test {

/// get() returns the values of this process for any owner.
class lone_launcher : public launch::launcher {
public:
    /// The rank is alone on its node. `job_id` must differ between launchers that live at the same
    /// time and create arenas.
    lone_launcher(int rank, int num_ranks, std::string job_id) {
        info_.rank = world_rank{rank};
        info_.size = num_ranks;
        info_.host = "test";
        info_.job_id = std::move(job_id);
        info_.local_ranks = {info_.rank};
    }
    [[nodiscard]] const launch::job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        values_[std::string(key)] = value;
        return {};
    }
    result<std::string> get(world_rank /*owner*/, std::string_view key) override {
        auto const found = values_.find(std::string(key));
        return found != values_.end() ? result<std::string>(found->second)
                                      : error(OMPX_ERR_STATE, "no value " + std::string(key));
    }
    status fence() override { return {}; }
    status finalize() override { return {}; }
    void abort(int /*code*/, std::string_view /*message*/) noexcept override { std::abort(); }
    [[nodiscard]] int watch_fd() const override { return -1; }
    [[nodiscard]] const char *name() const override { return "test"; }

private:
    launch::job_info info_;
    std::map<std::string, std::string> values_;
};

} // namespace diomp::test
