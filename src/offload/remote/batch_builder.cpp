// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/batch_builder.h"

#include <cstring>
#include <utility>

namespace diomp::offload::remote {
namespace {

constexpr int deferred_batches_per_reply = 16;

} // namespace

void batch_builder::put(std::uint64_t address, const void *source, std::size_t nbytes) {
    append_operation(pending_, operation::put);
    pending_.number(address);
    pending_.text({static_cast<const char *>(source), nbytes});
    put_ranges_.push_back({address, address + nbytes});
    include(content::transfers);
}

void batch_builder::get(void *destination, std::uint64_t address, std::size_t nbytes) {
    append_operation(pending_, operation::get);
    pending_.number(address);
    pending_.number(static_cast<std::uint64_t>(nbytes));
    gets_.push_back({destination, nbytes});
    num_reply_bytes_ += nbytes;
    include(content::transfers);
}

void batch_builder::copy(operation op, world_rank other, std::uint64_t destination,
                         std::uint64_t source, std::size_t nbytes) {
    append_operation(pending_, op);
    pending_.number(static_cast<std::uint32_t>(other.value()));
    pending_.number(destination);
    pending_.number(source);
    pending_.number(static_cast<std::uint64_t>(nbytes));
    include(content::copies);
}

void batch_builder::zero_copy(operation op, const zero_copy_transfer &what) {
    append_operation(pending_, op);
    append(pending_, what);
    include(content::copies);
}

void batch_builder::launch(std::string_view encoded, std::uint64_t kernel) {
    pending_.bytes(encoded);
    kernels_.push_back(kernel);
    include(content::session);
}

void batch_builder::wait(std::uint64_t queue, std::uint64_t batch) {
    append_operation(pending_, operation::wait);
    pending_.number(queue);
    pending_.number(batch);
    include(content::session);
}

void batch_builder::release_pages(std::span<const device_memory::range> ranges) {
    append_operation(pending_, operation::release_pages);
    pending_.number(static_cast<std::uint32_t>(ranges.size()));
    for (device_memory::range const &each : ranges) {
        pending_.number(each.address);
        pending_.number(each.nbytes);
    }
}

void batch_builder::call_part(std::string_view bytes) {
    append_operation(pending_, operation::call_part);
    pending_.text(bytes);
    include(content::copies);
}

void batch_builder::call(std::span<char, call_outcome_bytes> outcome) {
    append_operation(pending_, operation::call);
    gets_.push_back({outcome.data(), outcome.size()});
    num_reply_bytes_ += outcome.size();
    include(content::copies);
}

bool batch_builder::overlaps_pending_put(std::uint64_t address, std::size_t nbytes) const {
    return std::ranges::any_of(put_ranges_, [&](const range &each) {
        return address < each.end && each.begin < address + nbytes;
    });
}

std::string batch_builder::take_message(bool last) {
    if (last) {
        append_operation(pending_, operation::finish);
        num_unacknowledged_ = 0;
    }
    packet_writer message;
    message.number(queue_);
    message.number(batch_++);
    message.bytes(std::exchange(pending_, {}).take());
    put_ranges_.clear();
    is_partly_sent_ = true;
    return message.take();
}

std::string batch_builder::take_deferred() {
    std::string message = take_message(++num_unacknowledged_ >= deferred_batches_per_reply);
    content_ = content::none; // its number has been used
    discard();
    return message;
}

void batch_builder::finish_gets(std::string_view bytes) const {
    const char *from = bytes.data();
    for (pending_get const &each : gets_) {
        std::memcpy(each.destination, from, each.nbytes);
        from += each.nbytes;
    }
}

std::uint64_t batch_builder::discard() {
    pending_ = {};
    put_ranges_.clear();
    kernels_.clear();
    gets_.clear();
    num_reply_bytes_ = 0;
    is_partly_sent_ = false;
    return std::exchange(content_, content::none) == content::none ? 0 : batch_++;
}

} // namespace diomp::offload::remote
