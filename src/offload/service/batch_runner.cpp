// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/batch_runner.h"

#include "offload/service/region_runtime.h"
#include "transport/conduit.h"

#include <algorithm>
#include <utility>

namespace diomp::offload::service {
namespace {

/// Larger than the maximum message of any conduit.
constexpr std::size_t max_reply_bytes = std::size_t{1} << 20;
/// Copies of this size are started after the replies to earlier ones that are complete.
constexpr std::size_t min_large_bytes = std::size_t{64} << 10;

} // namespace

bool batch_runner::run(queue_results &results, remote::operation what, packet_reader &packet,
                       std::size_t thread) {
    auto const try_to = [&](auto &&operation) {
        if (!results.failure.empty()) {
            return; // operations after an error are skipped
        }
        if (!packet.ok()) {
            results.failure = "malformed batch";
        } else if (status const done = operation(); !done) {
            results.failure = done.failure().message();
        }
    };
    switch (what) {
    case remote::operation::put: {
        auto const address = packet.number<std::uint64_t>();
        std::string_view const bytes = packet.text();
        try_to([&] { return device_.write(address, bytes.data(), bytes.size()); });
        return true;
    }
    case remote::operation::get: {
        auto const address = packet.number<std::uint64_t>();
        auto const nbytes = packet.number<std::uint64_t>();
        try_to([&] { return get(results, address, nbytes); });
        return true;
    }
    case remote::operation::fetch:
    case remote::operation::deliver: {
        auto const transfer = remote::decode_zero_copy(packet);
        try_to([&] { return transfers_.begin_zero_copy(results.zero_copy, what, transfer); });
        return true;
    }
    case remote::operation::copy:
    case remote::operation::pull: {
        world_rank const other(static_cast<int>(packet.number<std::uint32_t>()));
        auto const destination = packet.number<std::uint64_t>();
        auto const source = packet.number<std::uint64_t>();
        auto const nbytes = packet.number<std::uint64_t>();
        try_to([&]() -> status {
            std::unique_ptr<started_copies> copies;
            DIOMP_TRY(transfers_.begin_copy(copies, what, other, destination, source, nbytes));
            return transfers_.finish(copies);
        });
        return true;
    }
    case remote::operation::launch: {
        auto const arguments = remote::decode_launch(packet);
        try_to([&] { return kernels_.launch(arguments, thread, results.longest); });
        if (runtime_ != nullptr) {
            runtime_->fence(); // the end of a region completes its transfers
        }
        return true;
    }
    case remote::operation::call_part: {
        std::string_view const part = packet.text();
        try_to([&] {
            results.call.append(part);
            return status();
        });
        return true;
    }
    case remote::operation::call:
        try_to([&] { return call(results); });
        results.call.clear();
        return true;
    case remote::operation::release_pages:
        if (status const released = transfers_.release_pages(packet); !released) {
            results.failure = released.failure().message();
        }
        return true;
    default:
        try_to([] { return status(error(OMPX_ERR_ARG, "unknown operation in a batch")); });
        return false;
    }
}

status batch_runner::get(queue_results &results, std::uint64_t address, std::size_t nbytes) {
    std::size_t const before = results.gets.size();
    if (nbytes > max_reply_bytes) {
        return error(OMPX_ERR_ARG, "a batch requests more bytes than a reply can have");
    }
    results.gets.resize(before + nbytes);
    return device_.read(results.gets.data() + before, address, nbytes);
}

status batch_runner::call(queue_results &results) {
    if (runtime_ == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "the device makes no calls");
    }
    results.gets += encode_call_outcome(runtime_->run_call(results.call));
    return {};
}

void batch_runner::start_copy(remote::world &ranks, queue_results &results, remote::operation what,
                              packet_reader &packet, std::uint64_t batch) {
    world_rank const other(static_cast<int>(packet.number<std::uint32_t>()));
    auto const destination = packet.number<std::uint64_t>();
    auto const source = packet.number<std::uint64_t>();
    auto const nbytes = packet.number<std::uint64_t>();
    if (nbytes >= min_large_bytes) {
        finish_copies(ranks, results, copies_until::complete); // it may take a while
    }
    auto const plain =
        what == remote::operation::begin_copy ? remote::operation::copy : remote::operation::pull;
    auto open = std::ranges::find_if(results.copies, [&](const running_copies &each) {
        return each.what == plain && each.other == other &&
               (each.copies == nullptr || !each.copies->are_flushed);
    });
    if (open == results.copies.end()) {
        open = results.copies.insert(open, running_copies{plain, other, {}, nullptr});
    }
    status const begun =
        packet.ok() ? transfers_.begin_copy(open->copies, plain, other, destination, source, nbytes)
                    : status(error(OMPX_ERR_ARG, "malformed batch"));
    if (begun) {
        open->batches.push_back(batch);
    } else {
        reply_to_copies(ranks, {&batch, 1}, begun);
    }
}

void batch_runner::reply_to_copies(remote::world &ranks, std::span<const std::uint64_t> batches,
                                   const status &done) {
    for (std::uint64_t const each : batches) {
        remote::batch_reply reply;
        reply.queue = remote::started_queue;
        reply.batch = each;
        reply.failed = !done;
        std::string_view const others(reinterpret_cast<const char *>(batches.data()),
                                      batches.size_bytes());
        std::string_view const rest = done ? others : std::string_view(done.failure().message());
        std::size_t const max_bytes =
            ranks.conduit().max_message_bytes(client_) - remote::reply_header_bytes;
        reply.rest = rest.substr(0, max_bytes);
        ranks.send(client_, remote::world::reply_handler, encode(reply));
        if (done) {
            return; // one reply for all
        }
    }
}

void batch_runner::finish_copies(remote::world &ranks, queue_results &results, copies_until until) {
    std::erase_if(results.copies, [&](running_copies &each) {
        if (each.copies != nullptr) {
            static_cast<void>(transfers_.flush(*each.copies)); // finish() reports an error
        }
        if (until == copies_until::complete && !each.are_complete()) {
            return false;
        }
        reply_to_copies(ranks, each.batches, transfers_.finish(each.copies));
        return true;
    });
}

void batch_runner::finish_zero_copy(queue_results &results) {
    status const completed = transfers_.finish_zero_copy(results.zero_copy);
    if (!completed && results.failure.empty()) {
        results.failure = completed.failure().message();
    }
}

void batch_runner::reply(remote::world &ranks, std::uint64_t queue, std::uint64_t batch,
                         queue_results &results) {
    auto const printed = printed_.flush();
    remote::batch_reply reply;
    reply.queue = queue;
    reply.batch = batch;
    reply.failed = !results.failure.empty();
    reply.output_bytes[0] = printed[0];
    reply.output_bytes[1] = printed[1];
    reply.kernel = std::exchange(results.longest.kernel, 0);
    reply.kernel_us = static_cast<std::uint64_t>(results.longest.time.count());
    std::size_t const max_bytes = ranks.conduit().max_message_bytes(client_);
    std::string_view const rest = reply.failed ? results.failure : results.gets;
    if (!reply.failed && rest.size() + remote::reply_header_bytes > max_bytes) {
        results.failure = "a batch requests more bytes than a reply can have";
        reply.failed = true;
        reply.rest = results.failure;
    } else {
        reply.rest = rest.substr(0, max_bytes - remote::reply_header_bytes);
    }
    std::string failed_call;
    if (runtime_ != nullptr) {
        failed_call =
            runtime_->take_error(max_bytes - remote::reply_header_bytes - reply.rest.size());
        reply.call_error = failed_call;
    }
    ranks.send(client_, remote::world::reply_handler, encode(reply));
    results.failure.clear();
    results.gets.clear();
}

} // namespace diomp::offload::service
