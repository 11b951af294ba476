// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/mailbox.h"

#include "group/letter_bytes.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

void inbox::begin_call(std::uint64_t call, const call_state &own) {
    std::lock_guard const guard(mutex_);
    call_ = call;
    journal_[call % journal_length] = {call, {own, -1, 0}};
    answer_.reset();
    has_answer_.store(false, std::memory_order_relaxed);
    while (!letters_.empty() && letters_.begin()->first.first.call < call) {
        compare_late(letters_.begin()->first.first, letters_.begin()->second.kept);
        letters_.erase(letters_.begin());
    }
    std::erase_if(ready_, [call](const auto &each) { return each.first.first.call < call; });
}

void inbox::update(const call_state &state, std::int32_t awaited) {
    std::lock_guard const guard(mutex_);
    journal_[call_ % journal_length].report = {state, awaited, 0};
}

std::optional<call_report> inbox::take_answer() {
    if (!has_answer_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    std::lock_guard const guard(mutex_);
    has_answer_.store(false, std::memory_order_relaxed);
    return std::exchange(answer_, std::nullopt);
}

std::optional<std::pair<call_state, call_state>> inbox::take_late() {
    if (!has_late_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    std::lock_guard const guard(mutex_);
    has_late_.store(false, std::memory_order_relaxed);
    return std::exchange(late_, std::nullopt);
}

void inbox::compare_late(const letter_tag &tag, std::span<const std::byte> head) {
    if (tag.step >= step_payloads) {
        return; // does not begin with a state
    }
    const journal_entry &made = journal_[tag.call % journal_length];
    if (made.call != tag.call || head.size() < sizeof(call_state) || late_ ||
        !made.report.state.agrees()) {
        return;
    }
    auto const heard = read_as<call_state>(head);
    const call_state &own = made.report.state;
    if (heard.first != call_state::nobody &&
        (heard.call.what != own.call.what || heard.call.root != own.call.root)) {
        late_.emplace(own, heard);
        has_late_.store(true, std::memory_order_release);
    }
}

mailbox::mailbox(conduit::engine &engine, workspace &space, std::byte *own_slot)
    : engine_(engine), space_(space), own_slot_(own_slot),
      fragment_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_fragment(incoming); })),
      ready_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_ready(incoming); })),
      whole_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_whole(incoming); },
                             [this](const conduit::message &announced, std::size_t nbytes) {
                                 return place_whole(announced, nbytes);
                             })),
      landed_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_landed(incoming); })),
      question_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_question(incoming); })),
      answer_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_answer(incoming); })) {}

mailbox::~mailbox() {
    for (std::uint64_t const each : free_landings_) {
        space_.release(each - 1);
    }
}

// They are kept for the next letters: memory that is given back would be zeroed again and again.
std::uint64_t mailbox::take_landing() {
    std::lock_guard const guard(landings_mutex_);
    if (free_landings_.empty()) {
        auto const made = num_landings_ < max_landings ? space_.allocate(landing_bytes)
                                                       : std::optional<std::uint64_t>{};
        num_landings_ += made ? 1 : 0;
        return made ? *made + 1 : 0;
    }
    std::uint64_t const taken = free_landings_.back();
    free_landings_.pop_back();
    return taken;
}

inbox &mailbox::open(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    auto &found = inboxes_[group_id];
    if (!found) {
        found = std::make_unique<inbox>();
    }
    return *found;
}

void mailbox::close(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    closed_[num_closed_++ % num_remembered] = group_id + 1;
    if (inbox *const own = find(group_id); own != nullptr) {
        std::lock_guard const inner(own->mutex_); // whoever delivers a letter is through
    }
    inboxes_.erase(group_id);
}

mailbox::locked_inbox mailbox::lock_for_letter(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    inbox *own = find(group_id);
    if (own == nullptr) {
        if (std::ranges::find(closed_, group_id + 1) != closed_.end()) {
            return {};
        }
        own = (inboxes_[group_id] = std::make_unique<inbox>()).get();
    }
    return {own, std::unique_lock(own->mutex_)};
}

inbox *mailbox::find(std::uint64_t group_id) {
    auto const found = inboxes_.find(group_id);
    return found == inboxes_.end() ? nullptr : found->second.get();
}

void mailbox::send(std::uint64_t group_id, world_rank to, letter_tag tag,
                   std::span<const std::byte> head, std::span<const std::byte> body) {
    std::size_t const total = head.size() + body.size();
    std::size_t const most = engine_.transport().max_message_bytes(to) - sizeof(fragment_header);
    bool may_wait = !is_eager(total);
    alignas(16) std::array<std::byte, 1024> small;
    std::vector<std::byte> large;
    std::size_t const message_bytes = sizeof(fragment_header) + std::min(total, most);
    if (message_bytes > small.size()) {
        large.resize(message_bytes);
    }
    std::byte *const message = large.empty() ? small.data() : large.data();
    std::size_t offset = 0;
    do {
        std::size_t const n = std::min(most, total - offset);
        fragment_header const header{group_id, tag, total, offset};
        std::memcpy(message, &header, sizeof(header));
        std::byte *const payload = message + sizeof(header);
        std::size_t const from_head = offset < head.size() ? std::min(n, head.size() - offset) : 0;
        if (from_head > 0) {
            std::memcpy(payload, head.data() + offset, from_head);
        }
        if (n > from_head) {
            std::memcpy(payload + from_head, body.data() + (offset + from_head - head.size()),
                        n - from_head);
        }
        std::span<const std::byte> const whole(message, sizeof(header) + n);
        // Large letters wait for room; the fragments' order does not matter. If that fails the
        // engine keeps the fragment, as it does small ones.
        bool sent = false;
        if (may_wait) {
            sent =
                engine_
                    .wait_for_network(
                        [&] { return engine_.transport().try_send(to, fragment_handler_, whole); },
                        [&] { return "waiting for room in a send queue"; })
                    .ok();
        }
        if (!sent) {
            may_wait = false; // one wait that is too long is enough
            engine_.send(to, fragment_handler_, whole);
        }
        offset += n;
    } while (offset < total);
}

std::optional<std::uint64_t> mailbox::take_readiness(inbox &own, world_rank of, letter_tag tag) {
    std::lock_guard const guard(own.mutex_);
    inbox::letter_key const key{tag, of};
    auto const found =
        std::ranges::find(own.ready_, key, [](const auto &each) { return each.first; });
    if (found == own.ready_.end()) {
        return std::nullopt;
    }
    std::uint64_t const address = found->second;
    own.ready_.erase(found);
    return address;
}

result<bool> mailbox::send_whole(std::uint64_t group_id, world_rank to, letter_tag tag,
                                 std::span<const std::byte> head, std::span<const std::byte> body,
                                 conduit::completion &done) {
    std::array<std::byte, sizeof(note) + most_head_bytes> payload;
    note const front{group_id, tag, 0};
    std::memcpy(payload.data(), &front, sizeof(front));
    if (!head.empty()) {
        std::memcpy(payload.data() + sizeof(front), head.data(), head.size());
    }
    return engine_.send_bulk(to, whole_handler_, {payload.data(), sizeof(front) + head.size()},
                             body, done);
}

void mailbox::tell_landed(std::uint64_t group_id, world_rank to, letter_tag tag) {
    engine_.send(to, landed_handler_, note{group_id, tag, 0});
}

void mailbox::expect(std::uint64_t group_id, inbox &own, receipt &place, bool tells_sender) {
    bool const is_large = place.head.empty() && !is_eager(place.body.size());
    {
        std::lock_guard const guard(own.mutex_);
        auto const found = own.letters_.try_emplace({place.tag, place.from}).first;
        inbox::letter &letter = found->second;
        place_bytes(place, 0, letter.kept);
        letter.kept.clear();
        letter.expected = &place;
        if (letter.is_complete()) {
            place.total_bytes = letter.total_bytes;
            place.done.store(true, std::memory_order_release);
            own.letters_.erase(found);
            return;
        }
    }
    if (!is_large || !tells_sender) {
        return;
    }
    std::uint64_t address = 0;
    if (place.head.empty() && space_.holds(place.body)) {
        address = reinterpret_cast<std::uint64_t>(place.body.data());
    } else if (place.head.empty() && place.body.size() <= landing_bytes) {
        place.landing = take_landing();
        address =
            place.landing == 0 ? 0 : reinterpret_cast<std::uint64_t>(own_slot_ + place.landing - 1);
    }
    engine_.send(place.from, ready_handler_, note{group_id, place.tag, address});
}

void mailbox::collect(receipt &place) {
    if (place.landing == 0) {
        return;
    }
    std::memcpy(place.body.data(), own_slot_ + place.landing - 1, place.body.size());
    give_back(place);
}

void mailbox::give_back(receipt &place) {
    if (place.landing != 0) {
        std::lock_guard const guard(landings_mutex_);
        free_landings_.push_back(std::exchange(place.landing, 0));
    }
}

// A landing is lost with it: the letter may still come.
void mailbox::withdraw(inbox &own, receipt &place) {
    bool goes_straight = false;
    {
        std::lock_guard const guard(own.mutex_);
        if (auto const found = own.letters_.find({place.tag, place.from});
            found != own.letters_.end()) {
            goes_straight = found->second.goes_straight;
            own.letters_.erase(found);
        }
    }
    if (goes_straight) {
        engine_.transport().divert_bulk(place.body.data());
    }
}

void mailbox::ask(std::uint64_t group_id, world_rank whom, std::uint64_t call) {
    engine_.send(whom, question_handler_, note{group_id, {call, 0}, 0});
}

} // namespace diomp::group
