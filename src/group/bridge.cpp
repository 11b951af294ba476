// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/bridge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::group {
namespace {

/// First word of a speaker's second post.
constexpr std::uint64_t all_is_well = 0;
constexpr std::uint64_t has_failed = 1;

} // namespace

bridge::bridge(conduit::engine &engine, mailbox &letters, std::uint64_t group_id,
               std::span<const world_rank> members, const node_layout &layout, local_group &here,
               std::size_t self)
    : engine_(engine), mailbox_(letters), group_id_(group_id), members_(members), layout_(layout),
      here_(here), self_(self), inbox_(letters.open(group_id)),
      outgoing_(std::make_unique<std::deque<outgoing_letter>>()) {
    here_.lines().leave_comparing_to_caller();
}

bridge::~bridge() {
    if (!outgoing_->empty()) {
        static_cast<void>(outgoing_.release()); // lost peers: nobody knows when it is over
    }
    mailbox_.close(group_id_);
}

std::size_t bridge::speaker_of(std::size_t node) const {
    std::uint16_t const root = made_.root;
    bool const has_root_there = root < members_.size() && layout_.node(root) == node;
    return has_root_there ? root : layout_.leaders[node];
}

group_rank bridge::speaker_place() const {
    auto const found = std::ranges::lower_bound(layout_.here, speaker_of(own_node()));
    return group_rank{static_cast<int>(found - layout_.here.begin())};
}

void bridge::begin(const sync::call_signature &call) {
    ++call_;
    made_ = call;
    state_ = {};
    state_.call = call;
    state_.first = static_cast<std::uint32_t>(self_);
    failure_.reset();
    broken_ = false;
    inbox_.begin_call(call_, state_);
    show_awaited(-1);
}

void bridge::object(std::uint64_t detail) {
    state_.objector = static_cast<std::uint32_t>(self_);
    state_.objection = detail;
}

void bridge::post(const sync::meeting_payload &payload, std::span<const std::byte> data) {
    if (status posted = here_.post(made_, payload, data); !posted) {
        give_up_on(members_[self_].value(), posted.take_failure());
    }
}

void bridge::enter(std::span<const std::byte> data) {
    if (alone_here()) {
        return;
    }
    if (data.size() > sync::rendezvous::wide_bytes) {
        // After posts that nobody waited for, somebody may still read the stage.
        if (status settled = here_.settle(); !settled) {
            give_up_on(members_[self_].value(), settled.take_failure());
        }
        if (announced_at_ != 0 && announced_at_ == here_.lines().epoch()) {
            await_posts(announced_at_ + 1); // the others have read what this member told last
        }
        std::memcpy(here_.next_stage(stage_size(data.size())), data.data(), data.size());
        data = {};
    }
    bool const objects = state_.objector != call_state::nobody;
    post({objects ? 1U : 0U, state_.objection}, data);
    if (!speaks()) {
        post({all_is_well, self_}, {});
    }
}

void bridge::collect() {
    for (std::size_t place = 0; place < here_.size(); ++place) {
        if (place == layout_.own_place) {
            continue;
        }
        if (!await_post(place)) {
            return;
        }
        group_rank const from{static_cast<int>(place)};
        call_state theirs;
        theirs.call = here_.lines().call_of(from);
        theirs.first = layout_.here[place];
        if (here_.payload_of(place)[0] != 0) {
            theirs.objector = theirs.first;
            theirs.objection = here_.payload_of(place)[1];
        }
        state_.merge(theirs);
    }
    collected_at_ = here_.lines().epoch();
}

std::byte *bridge::slot_of(std::size_t place, std::size_t nbytes, std::uint64_t meeting) const {
    if (nbytes > most_data_bytes) {
        return here_.stage_at(place, meeting, nbytes);
    }
    std::size_t const slot = slot_bytes(nbytes);
    std::size_t const number = meeting / 2 % num_slots(slot);
    return here_.room_of(place, number % 2) + number / 2 * slot;
}

// A member that has entered a call has read what was announced in those before it. Slots of one
// size lie behind one another, two meetings apart; after another size everybody is waited for.
void bridge::make_room(std::size_t nbytes) {
    std::uint64_t const now = here_.lines().epoch(); // the first post; the data goes with the next
    std::size_t const slot = slot_bytes(nbytes);
    if (announced_slot_ != slot || announced_at_ + 1 != now) {
        collect();
        return;
    }
    std::uint64_t const others_read = 2 * (num_slots(slot) - 1);
    if (now >= collected_at_ + others_read) {
        await_posts(now - others_read);
    }
}

void bridge::await_posts(std::uint64_t meeting) {
    for (std::size_t place = 0; place < here_.size(); ++place) {
        if (place != layout_.own_place && !await_post(place, meeting)) {
            return;
        }
    }
}

const std::byte *bridge::brought_by(std::size_t place, std::size_t nbytes) const {
    return nbytes > sync::rendezvous::wide_bytes ? here_.stage_of(place, stage_size(nbytes))
                                                 : here_.wide_of(place);
}

// After round r a node has heard from the 2^(r+1) - 1 nodes before it, itself or through others; or
// from those whose numbers differ from its own in the last r + 1 bits: who hears from whom it has
// told waits for one other node only.
void bridge::disseminate() {
    std::size_t const num = num_nodes();
    std::size_t const own = own_node();
    bool const in_pairs = std::has_single_bit(num);
    std::uint64_t step = step_state;
    for (std::size_t distance = 1; distance < num; distance *= 2, ++step) {
        tell(speaker_of(in_pairs ? own ^ distance : (own + distance) % num), step, {});
        hear(speaker_of(in_pairs ? own ^ distance : (own + num - distance) % num), step, {});
    }
}

void bridge::announce(std::span<const std::byte> data) {
    if (alone_here()) {
        return;
    }
    if (state_.is_clean()) {
        if (data.size() > sync::rendezvous::wide_bytes) {
            // Nobody reads there any more.
            announced_at_ = here_.lines().epoch() + 1;
            announced_slot_ = slot_bytes(data.size());
            std::memcpy(slot_of(layout_.own_place, data.size(), announced_at_), data.data(),
                        data.size());
            data = {};
        }
        post({all_is_well, state_.first}, data);
    } else {
        post({has_failed, state_.first}, bytes_of(state_));
    }
}

void bridge::follow() {
    group_rank const speaker = speaker_place();
    if (!await_post(speaker.index())) {
        return;
    }
    const sync::meeting_payload &told = here_.payload_of(speaker.index());
    call_state theirs;
    if (told[0] == has_failed) {
        std::memcpy(&theirs, here_.wide_of(speaker.index()), sizeof(theirs));
        // Also if it is another one on this node: the call is over.
        state_.missing = theirs.missing == self_ ? call_state::nobody : theirs.missing;
    } else {
        theirs.call = here_.lines().call_of(speaker);
        theirs.first = static_cast<std::uint32_t>(told[1]);
    }
    merge(theirs);
}

const std::byte *bridge::announced(std::size_t nbytes) const {
    std::size_t const speaker = speaker_place().index();
    if (nbytes <= sync::rendezvous::wide_bytes) {
        return here_.wide_of(speaker);
    }
    return slot_of(speaker, nbytes, here_.lines().epoch());
}

status bridge::outcome() {
    if (!state_.agrees()) {
        inbox_.update(state_, shown_); // letters that still come have nothing new to tell
        return sync::disagreement(members_[state_.first], state_.call, members_[state_.other],
                                  state_.other_call);
    }
    if (failure_) {
        return std::move(*std::exchange(failure_, std::nullopt));
    }
    if (state_.missing != call_state::nobody) {
        return error(OMPX_ERR_TIMEOUT,
                     fmt::format("another rank has given up {}",
                                 describe_wait(members_[state_.missing].value())),
                     "raise DIOMP_TIMEOUT if the other ranks are only slow");
    }
    return {};
}

status bridge::found_late() {
    auto const late = inbox_.take_late();
    if (!late) {
        return {};
    }
    const auto &[low, high] =
        std::minmax(late->first, late->second,
                    [](const call_state &a, const call_state &b) { return a.first < b.first; });
    return sync::disagreement(members_[low.first], low.call, members_[high.first], high.call);
}

void bridge::merge(const call_state &heard) {
    call_state taken = heard;
    if (taken.missing != call_state::nobody && layout_.node(taken.missing) == own_node()) {
        taken.missing = call_state::nobody; // the one that others gave up on has come after all
    }
    state_.merge(taken);
}

status bridge::share(std::span<std::byte> bytes, bool sound) {
    if (alone_here()) {
        return {};
    }
    DIOMP_TRY(here_.settle());
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t const n = std::min(bytes.size() - at, here_.stage_bytes());
        if (is_leader() && sound) {
            std::memcpy(here_.next_stage(), bytes.data() + at, n);
        }
        DIOMP_TRY(here_.meet(made_, {is_leader() && !sound ? 1U : 0U}));
        if (here_.payload_of(0)[0] != 0) {
            return error(OMPX_ERR_PEER, "the leader of this node has lost another node");
        }
        if (!is_leader()) {
            std::memcpy(bytes.data() + at, here_.stage_of(0), n);
        }
        at += n;
    }
    return {};
}

status bridge::widen_stages(const sync::call_signature &call, std::size_t stage_bytes,
                            std::size_t room_bytes) {
    begin(call);
    DIOMP_TRY(meet_begun());
    if (!alone_here() && here_.may_grow()) {
        DIOMP_TRY(here_.grow_stages(call, stage_bytes, room_bytes));
    }
    bool const has = alone_here() || here_.stage_bytes() >= most_told_bytes;
    auto objection =
        agree(call, has ? std::nullopt : std::optional<std::uint64_t>(here_.stage_bytes()));
    DIOMP_TRY(objection);
    has_wide_stages_ = !objection.value().has_value();
    return {};
}

void bridge::run_meeting() {
    if (speaks()) {
        collect();
        disseminate();
        announce();
    } else {
        follow();
    }
}

status bridge::meet(const sync::call_signature &call) {
    begin(call);
    DIOMP_TRY(meet_begun());
    return found_late();
}

status bridge::meet_begun() {
    enter();
    run_meeting();
    return outcome();
}

result<std::optional<objection>> bridge::agree(const sync::call_signature &call,
                                               std::optional<std::uint64_t> own_objection) {
    begin(call);
    if (own_objection) {
        object(*own_objection);
    }
    enter();
    run_meeting();
    DIOMP_TRY(outcome());
    if (state_.objector == call_state::nobody) {
        return std::optional<objection>{};
    }
    return std::optional{objection{state_.objector, state_.objection}};
}

status bridge::meet(const sync::call_signature &call, const sync::meeting_payload &payload) {
    begin(call);
    payloads_.resize(members_.size());
    payloads_[self_] = payload;
    enter(std::as_bytes(std::span(payload)));
    if (speaks()) {
        collect();
        for (std::size_t place = 0; place < here_.size() && is_clean(); ++place) {
            if (place != layout_.own_place) {
                std::memcpy(&payloads_[layout_.here[place]], brought_by(place, sizeof(payload)),
                            sizeof(payload));
            }
        }
        disseminate();
        announce();
    } else {
        follow();
    }
    DIOMP_TRY(outcome());
    status exchanged = is_leader() ? exchange_payloads() : status{};
    DIOMP_TRY(share(std::as_writable_bytes(std::span(payloads_)), exchanged.ok()));
    return exchanged;
}

// Bruck's allgather: with the payloads of `have` nodes, beginning with its own, a leader sends them
// to the one `have` nodes before it and gets as many from the one behind them.
status bridge::exchange_payloads() {
    std::size_t const num = num_nodes();
    std::uint64_t step = step_payloads;
    for (std::size_t have = 1; have < num; ++step) {
        std::size_t const n = std::min(have, num - have);
        std::vector<sync::meeting_payload> out;
        std::vector<std::uint32_t> coming;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::uint32_t const member : layout_.members_of((own_node() + i) % num)) {
                out.push_back(payloads_[member]);
            }
            auto const theirs = layout_.members_of((own_node() + have + i) % num);
            coming.insert(coming.end(), theirs.begin(), theirs.end());
        }
        std::vector<sync::meeting_payload> in(coming.size());
        receipt place;
        expect(place, layout_.leaders[(own_node() + have) % num], step,
               std::as_writable_bytes(std::span(in)));
        if (status sent = send(layout_.leaders[(own_node() + num - have) % num], step,
                               std::as_bytes(std::span(out)));
            !sent) {
            mailbox_.withdraw(inbox_, place);
            return sent;
        }
        DIOMP_TRY(await(place));
        DIOMP_TRY(finish_sends());
        for (std::size_t i = 0; i < coming.size(); ++i) {
            payloads_[coming[i]] = in[i];
        }
        have += n;
    }
    return {};
}

} // namespace diomp::group
