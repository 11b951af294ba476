// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "charged_copies.h"
#include "diomp/types.h"
#include "measured.h"
#include "node_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace diomp::simulation {
namespace {

namespace s4u = simgrid::s4u;
using sync::operation;

operation operation_of(const std::string &collective) {
    return collective == "barrier"     ? operation::barrier
           : collective == "bcast"     ? operation::bcast
           : collective == "allreduce" ? operation::allreduce
           : collective == "allgather" ? operation::allgather
                                       : operation::alltoall;
}

/// Sizes of a simulated rank's buffers. Where one rank stands for its node, its block holds those
/// of the node's ranks.
struct buffer_sizes {
    std::size_t block = 0;
    std::size_t src = 0;
    std::size_t dst = 0;
};

buffer_sizes sizes_of(const trial &what, const job_options &options, std::size_t num_ranks) {
    auto const per_simulated =
        static_cast<std::size_t>(options.hardware.ranks_per_node / options.simulated_per_node());
    if (what.collective == "allgather") {
        std::size_t const block = what.nbytes * per_simulated;
        return {block, block, block * num_ranks};
    }
    if (what.collective == "alltoall") {
        return {what.nbytes, what.nbytes * num_ranks, what.nbytes * num_ranks};
    }
    return {what.nbytes, what.nbytes, what.nbytes};
}

/// Byte `index` of what a rank sends to all, or to `to`.
unsigned char pattern(std::size_t from, std::size_t to, std::size_t index) {
    return static_cast<unsigned char>(from * 37 + to * 11 + index * 3 + 5);
}

/// Buffers of a rank, filled and checked.
class checked_buffers {
public:
    checked_buffers(const trial &what, const buffer_sizes &sizes, std::size_t rank,
                    std::size_t num_ranks)
        : what_(operation_of(what.collective)), sizes_(sizes), rank_(rank), num_ranks_(num_ranks),
          src_(sizes.src), dst_(sizes.dst) {
        if (what_ == operation::allreduce) {
            auto *const numbers = reinterpret_cast<double *>(src_.data());
            for (std::size_t i = 0; i < sizes.src / sizeof(double); ++i) {
                numbers[i] = static_cast<double>(rank + i % 7);
            }
            return;
        }
        for (std::size_t i = 0; i < sizes.src; ++i) {
            bool const each = what_ == operation::alltoall;
            src_[i] = pattern(rank, each ? i / sizes.block : 0, each ? i % sizes.block : i);
        }
        if (what_ == operation::bcast && rank == 0) {
            dst_ = src_;
        }
    }

    [[nodiscard]] void *src() { return src_.data(); }
    [[nodiscard]] void *dst() { return dst_.data(); }
    [[nodiscard]] bool is_right() const {
        if (what_ == operation::allreduce) {
            return is_sum();
        }
        for (std::size_t i = 0; i < sizes_.dst; ++i) {
            if (dst_[i] != expected(i)) {
                return false;
            }
        }
        return true;
    }

private:
    [[nodiscard]] unsigned char expected(std::size_t i) const {
        return what_ == operation::bcast
                   ? pattern(0, 0, i)
                   : pattern(i / sizes_.block, what_ == operation::alltoall ? rank_ : 0,
                             i % sizes_.block);
    }
    [[nodiscard]] bool is_sum() const {
        const auto *const numbers = reinterpret_cast<const double *>(dst_.data());
        double const ranks = static_cast<double>(num_ranks_ * (num_ranks_ - 1)) / 2;
        for (std::size_t i = 0; i < sizes_.dst / sizeof(double); ++i) {
            if (numbers[i] != ranks + static_cast<double>(num_ranks_ * (i % 7))) {
                return false;
            }
        }
        return true;
    }

    operation what_;
    buffer_sizes sizes_;
    std::size_t rank_;
    std::size_t num_ranks_;
    std::vector<unsigned char> src_;
    std::vector<unsigned char> dst_;
};

/// What the actors of the ranks share.
class measurement {
public:
    measurement(job &ranks, const std::vector<trial> &trials, int repeats, bool verifies,
                const result_sink &sink)
        : ranks_(ranks), trials_(trials), repeats_(repeats), verifies_(verifies), sink_(sink),
          together_(s4u::Barrier::create(static_cast<unsigned>(ranks.size()))), src_(largest().src),
          dst_(largest().dst) {
        if (ranks.options().in_arena) {
            charge_operands({src_.data(), src_.nbytes()});
        }
    }

    void run_rank(int rank) {
        for (const trial &each : trials_) {
            for (int i = 0; i <= repeats_; ++i) {
                run_once(rank, each, i == repeats_);
            }
        }
    }

private:
    [[nodiscard]] buffer_sizes sizes(const trial &of) const {
        return sizes_of(of, ranks_.options(), static_cast<std::size_t>(ranks_.size()));
    }
    [[nodiscard]] buffer_sizes largest() const {
        buffer_sizes most{4096, 4096, 4096};
        for (const trial &each : trials_) {
            most.src = std::max(most.src, sizes(each).src);
            most.dst = std::max(most.dst, sizes(each).dst);
        }
        return most;
    }

    void run_once(int rank, const trial &what, bool is_last) {
        std::optional<checked_buffers> own;
        if (verifies_) {
            own.emplace(what, sizes(what), static_cast<std::size_t>(rank),
                        static_cast<std::size_t>(ranks_.size()));
        }
        coll::request const call = request_of(what, own);
        node_work const work = work_of(ranks_.options().hardware, what.collective, what.nbytes,
                                       ranks_.options().all_ranks);
        ranks_.port_of(rank).sent() = {};
        together_->wait();
        begin_ = s4u::Engine::get_clock();
        end_ = begin_;
        spend(work.before_s);
        status const done = ranks_.run(rank, call);
        spend(work.after_s);
        end_ = std::max(end_, s4u::Engine::get_clock());
        if (!done) {
            throw std::runtime_error(done.failure().message());
        }
        together_->wait();
        if (own && !own->is_right()) {
            throw std::runtime_error(fmt::format("{} of {} bytes: wrong result at rank {}",
                                                 what.collective, what.nbytes, rank));
        }
        if (rank == 0 && is_last) {
            sink_(what, summary());
        }
        together_->wait(); // the counts have been read
    }

    coll::request request_of(const trial &what, std::optional<checked_buffers> &own) const {
        coll::request call;
        call.what = operation_of(what.collective);
        if (call.what == operation::barrier) {
            return call;
        }
        call.dst = own ? own->dst() : dst_.data();
        call.src = own ? own->src() : src_.data();
        call.amount = sizes(what).block;
        if (call.what == operation::allreduce) {
            call.type = OMPX_DOUBLE;
            call.op = OMPX_SUM;
            call.amount /= sizeof(double);
        } else if (call.what == operation::bcast) {
            call.root = 0;
            call.src = nullptr;
        }
        return call;
    }

    [[nodiscard]] measured summary() const {
        measured all{.seconds = end_ - begin_};
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            traffic const sent = ranks_.port_of(rank).sent();
            all.max_messages = std::max(all.max_messages, sent.messages);
            all.max_bytes = std::max(all.max_bytes, sent.bytes);
            all.all_messages += sent.messages;
        }
        return all;
    }

    job &ranks_;
    const std::vector<trial> &trials_;
    int repeats_;
    bool verifies_;
    const result_sink &sink_;
    s4u::BarrierPtr together_;
    reserved_memory src_; ///< of all ranks: their contents do not matter
    reserved_memory dst_;
    double begin_ = 0;
    double end_ = 0;
};

} // namespace

void measure_diomp(job &ranks, const std::vector<trial> &trials, int repeats, bool verifies,
                   const result_sink &sink) {
    measurement shared(ranks, trials, repeats, verifies, sink);
    for (int rank = 0; rank < ranks.size(); ++rank) {
        s4u::Actor::create(std::to_string(rank), ranks.port_of(rank).host(),
                           [&shared, rank] { shared.run_rank(rank); });
    }
    s4u::Engine::get_instance()->run();
}

} // namespace diomp::simulation
