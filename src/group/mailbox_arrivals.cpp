// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What follows from messages that arrive. Declared in mailbox.h.
#include "group/letter_bytes.h"
#include "group/mailbox.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

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

// Inside the conduit's progress. The lock is held while the data is copied, so that the receipt
// stays.
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
