// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/mailbox.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {
namespace {

template <typename Struct>
Struct read_as(std::span<const std::byte> payload) {
    Struct read;
    std::memcpy(&read, payload.data(), sizeof(read));
    return read;
}

/// Bytes [offset, ...) of a letter to where the receipt wants them.
void place_bytes(const receipt &place, std::size_t offset, std::span<const std::byte> bytes) {
    std::size_t const head = place.head.size();
    if (offset < head && !bytes.empty()) {
        std::size_t const n = std::min(bytes.size(), head - offset);
        std::memcpy(place.head.data() + offset, bytes.data(), n);
        bytes = bytes.subspan(n);
        offset += n;
    }
    std::size_t const at = offset - head;
    if (offset >= head && at < place.body.size() && !bytes.empty()) {
        std::memcpy(place.body.data() + at, bytes.data(),
                    std::min(bytes.size(), place.body.size() - at));
    }
}

} // namespace

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
    std::lock_guard const guard(mutex_);
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

void mailbox::on_fragment(const conduit::message &incoming) {
    auto const header = read_as<fragment_header>(incoming.payload);
    std::span<const std::byte> const bytes = incoming.payload.subspan(sizeof(header));
    auto const place_of_group = lock_for_letter(header.group_id);
    if (place_of_group.found == nullptr) {
        return;
    }
    inbox &own = *place_of_group.found;
    if (header.tag.call < own.call_) {
        if (header.offset == 0) {
            own.compare_late(header.tag, bytes);
        }
        return;
    }
    auto const found = own.letters_.try_emplace({header.tag, incoming.source}).first;
    inbox::letter &letter = found->second;
    if (letter.expected == nullptr && header.total_bytes > most_kept_bytes) {
        own.letters_.erase(found); // whoever expected it has given up
        return;
    }
    letter.started = true;
    letter.total_bytes = header.total_bytes;
    letter.arrived_bytes += bytes.size();
    if (letter.expected == nullptr) {
        letter.kept.resize(header.total_bytes);
        if (!bytes.empty()) {
            std::memcpy(letter.kept.data() + header.offset, bytes.data(), bytes.size());
        }
        return;
    }
    receipt &place = *letter.expected;
    place_bytes(place, header.offset, bytes);
    if (letter.is_complete()) {
        place.total_bytes = letter.total_bytes;
        own.letters_.erase(found);
        place.done.store(true, std::memory_order_release); // last: then it may be gone
    }
}

void mailbox::on_ready(const conduit::message &incoming) {
    auto const told = read_as<note>(incoming.payload);
    auto const place_of_group = lock_for_letter(told.group_id);
    if (place_of_group.found == nullptr) {
        return;
    }
    inbox &own = *place_of_group.found;
    if (told.tag.call >= own.call_) {
        own.ready_.emplace_back(inbox::letter_key{told.tag, incoming.source}, told.address);
    }
}

// Inside the conduit's progress. The lock is held while the data is copied, so that the receipt
// stays.
std::byte *mailbox::place_whole(const conduit::message &announced, std::size_t nbytes) {
    auto const told = read_as<note>(announced.payload);
    auto const place_of_group = lock_for_letter(told.group_id);
    if (place_of_group.found == nullptr) {
        return nullptr;
    }
    auto &letters = place_of_group.found->letters_;
    auto const found = letters.find({told.tag, announced.source});
    if (found == letters.end() || found->second.expected == nullptr) {
        return nullptr;
    }
    const receipt &place = *found->second.expected;
    if (place.head.size() != announced.payload.size() - sizeof(told) ||
        place.body.size() < nbytes) {
        return nullptr;
    }
    found->second.goes_straight = true;
    return place.body.data();
}

void mailbox::on_whole(const conduit::message &incoming) {
    auto const told = read_as<note>(incoming.payload);
    std::span<const std::byte> const head = incoming.payload.subspan(sizeof(told));
    auto const place_of_group = lock_for_letter(told.group_id);
    if (place_of_group.found == nullptr) {
        return;
    }
    inbox &own = *place_of_group.found;
    if (told.tag.call < own.call_) {
        own.compare_late(told.tag, head);
        return;
    }
    auto const found = own.letters_.try_emplace({told.tag, incoming.source}).first;
    inbox::letter &letter = found->second;
    std::size_t const total = head.size() + incoming.bulk.size();
    if (letter.expected == nullptr) {
        if (head.empty()) {
            own.letters_.erase(found); // whoever expected it has given up
            return;
        }
        letter.kept.assign(head.begin(), head.end());
        letter.kept.insert(letter.kept.end(), incoming.bulk.begin(), incoming.bulk.end());
        letter.started = true;
        letter.total_bytes = letter.arrived_bytes = total;
        return;
    }
    receipt &place = *letter.expected;
    own.letters_.erase(found);
    place_bytes(place, 0, head);
    if (incoming.bulk.data() != place.body.data()) {
        place_bytes(place, head.size(), incoming.bulk);
    }
    give_back(place);
    place.total_bytes = total;
    place.done.store(true, std::memory_order_release); // last: then it may be gone
}

void mailbox::on_landed(const conduit::message &incoming) {
    auto const told = read_as<note>(incoming.payload);
    auto const place_of_group = lock_for_letter(told.group_id);
    if (place_of_group.found == nullptr) {
        return;
    }
    inbox &own = *place_of_group.found;
    auto const found = own.letters_.find({told.tag, incoming.source});
    if (found == own.letters_.end() || found->second.expected == nullptr) {
        return; // whoever expected it has given up
    }
    receipt &place = *found->second.expected;
    own.letters_.erase(found);
    place.total_bytes = place.body.size();
    place.done.store(true, std::memory_order_release); // last: then it may be gone
}

void mailbox::on_question(const conduit::message &incoming) {
    auto const asked = read_as<note>(incoming.payload);
    answer reply{asked.group_id, asked.tag.call, {}};
    {
        std::lock_guard const guard(mutex_);
        inbox *const own = find(asked.group_id);
        if (own == nullptr) {
            return;
        }
        std::lock_guard const inner(own->mutex_);
        const inbox::journal_entry &made = own->journal_[asked.tag.call % inbox::journal_length];
        if (made.call != asked.tag.call) {
            return;
        }
        reply.report = made.report;
    }
    engine_.send(incoming.source, answer_handler_, reply);
}

void mailbox::on_answer(const conduit::message &incoming) {
    auto const told = read_as<answer>(incoming.payload);
    std::lock_guard const guard(mutex_);
    inbox *const own = find(told.group_id);
    if (own == nullptr) {
        return;
    }
    std::lock_guard const inner(own->mutex_);
    if (told.call == own->call_) {
        own->answer_ = told.report;
        own->has_answer_.store(true, std::memory_order_release);
    }
}

} // namespace diomp::group
