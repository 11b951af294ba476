// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/forked_ranks.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp_test {
namespace {

using namespace diomp::launch;
using diomp::local_rank;
using diomp::world_rank;

/// Lies in memory that both processes share.
struct board {
    static constexpr int max_rows = 16;
    struct row {
        char key[32];
        char value[16384];
    };
    std::atomic<int> arrivals{0};
    std::atomic<int> pid_of_1{0};
    std::atomic<int> num_rows[2]{};
    row rows[2][max_rows]{};
};

class board_launcher final : public launcher {
public:
    board_launcher(board &shared, int rank) : board_(shared) {
        info_.rank = world_rank{rank};
        info_.size = 2;
        info_.local = local_rank{0};
        info_.local_size = 1;
        info_.host = "host" + std::to_string(rank);
        info_.job_id = "forked-" + std::to_string(::getppid());
        info_.local_ranks = {world_rank{rank}};
    }
    const job_info &info() const override { return info_; }
    diomp::status put(std::string_view key, std::string_view value) override {
        auto &count = board_.num_rows[info_.rank.index()];
        board::row &row = board_.rows[info_.rank.index()][count.load()];
        if (count.load() == board::max_rows || key.size() >= sizeof(row.key) ||
            value.size() >= sizeof(row.value)) {
            return diomp::error(OMPX_ERR_NOMEM, "the test's launcher is full");
        }
        std::memcpy(row.key, key.data(), key.size());
        std::memcpy(row.value, value.data(), value.size());
        ++count;
        return {};
    }
    diomp::result<std::string> get(world_rank owner, std::string_view key) override {
        for (int i = 0; i < board_.num_rows[owner.index()].load(); ++i) {
            board::row const &row = board_.rows[owner.index()][i];
            if (key == row.key) {
                return std::string(row.value);
            }
        }
        return diomp::error(OMPX_ERR_STATE, "no such key");
    }
    diomp::status fence() override {
        int const round = board_.arrivals.fetch_add(1) / 2;
        while (board_.arrivals.load() < 2 * (round + 1)) {
            ::sched_yield();
        }
        return {};
    }
    diomp::status finalize() override { return {}; }
    void abort(int code, std::string_view /*message*/) noexcept override { std::_Exit(code); }
    int watch_fd() const override { return -1; }
    const char *name() const override { return "forked"; }

    board &board_;

private:
    job_info info_;
};

} // namespace

int process_of_rank_1(launcher &launcher) {
    return static_cast<board_launcher &>(launcher).board_.pid_of_1.load();
}

int run_two_ranks(const std::function<int(launcher &)> &body,
                  const std::function<void(int)> &beside) {
    void *const memory =
        ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -1;
    }
    board *const shared = new (memory) board;
    pid_t ranks[2];
    for (int rank = 1; rank >= 0; --rank) {
        ranks[rank] = ::fork();
        if (ranks[rank] == 0) {
            ::alarm(60); // whatever happens, no process is left
            board_launcher launcher(*shared, rank);
            std::_Exit(body(launcher));
        }
        if (rank == 1) {
            shared->pid_of_1 = ranks[1];
        }
    }
    if (beside) {
        beside(ranks[1]);
    }
    int status = 0;
    ::waitpid(ranks[0], &status, 0);
    ::kill(ranks[1], SIGKILL);
    ::waitpid(ranks[1], nullptr, 0);
    ::munmap(memory, sizeof(board));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace diomp_test
