// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/bridge.h"

#include "base/sanitizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace diomp::group {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Tells when a wait has become long enough to ask what is wrong, and then less and less often.
class patience {
public:
    bool is_over() {
        if (++looks_ % looks_per_glance != 0) {
            return false;
        }
        auto const now = clock::now();
        if (looks_ == looks_per_glance) {
            next_ = now + pause_;
        }
        if (now < next_) {
            return false;
        }
        pause_ = std::min(pause_ * 2, milliseconds{160});
        next_ = now + pause_;
        return true;
    }

private:
    static constexpr unsigned looks_per_glance = 16; // a look at the clock costs 20 ns
    unsigned looks_ = 0;
    milliseconds pause_{20};
    clock::time_point next_;
};

std::span<std::byte> bytes_of(call_state &state) {
    return std::as_writable_bytes(std::span(&state, 1));
}

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
    if (auto const late = inbox_.take_late()) {
        const auto &[low, high] =
            std::minmax(late->first, late->second,
                        [](const call_state &a, const call_state &b) { return a.first < b.first; });
        late_ = sync::disagreement(members_[low.first], low.call, members_[high.first], high.call);
    }
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
        std::memcpy(here_.next_stage(), data.data(), data.size());
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
}

const std::byte *bridge::brought_by(std::size_t place, std::size_t nbytes) const {
    return nbytes > sync::rendezvous::wide_bytes ? here_.stage_of(place) : here_.wide_of(place);
}

// After round r a node has heard from the 2^(r+1) - 1 nodes before it, itself or through others.
void bridge::disseminate() {
    std::size_t const num = num_nodes();
    std::uint64_t step = step_state;
    for (std::size_t distance = 1; distance < num; distance *= 2, ++step) {
        tell(speaker_of((own_node() + distance) % num), step, {});
        hear(speaker_of((own_node() + num - distance) % num), step, {});
    }
}

void bridge::announce(std::span<const std::byte> data) {
    if (alone_here()) {
        return;
    }
    if (state_.is_clean()) {
        if (data.size() > sync::rendezvous::wide_bytes) {
            // Who has made this call has read what was there.
            std::memcpy(here_.next_stage(), data.data(), data.size());
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
    return brought_by(speaker_place().index(), nbytes);
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
    if (late_) {
        return std::move(*std::exchange(late_, std::nullopt));
    }
    return {};
}

void bridge::merge(const call_state &heard) {
    call_state taken = heard;
    if (taken.missing != call_state::nobody && layout_.node(taken.missing) == own_node()) {
        taken.missing = call_state::nobody; // the one that others gave up on has come after all
    }
    state_.merge(taken);
}

void bridge::give_up_on(std::int32_t rank, error why) {
    if (!failure_) {
        failure_ = std::move(why);
    }
    auto const found = std::ranges::find(members_, world_rank{rank});
    state_.missing = std::min(state_.missing, static_cast<std::uint32_t>(found - members_.begin()));
}

void bridge::show_awaited(std::int32_t rank) {
    if (rank == shown_) {
        return;
    }
    shown_ = rank;
    inbox_.update(state_, rank);
    here_.block_of(layout_.own_place)
        .awaited_rank.store(static_cast<std::uint64_t>(rank) + 1, std::memory_order_relaxed);
}

void bridge::learn(const call_report &answer) {
    call_state both = state_;
    both.merge(answer.state);
    if (!both.agrees()) {
        merge(answer.state);
        broken_ = true;
    } else if (answer.awaited >= 0) {
        show_awaited(answer.awaited);
    }
}

std::string bridge::describe_wait(std::int32_t awaited) const {
    return fmt::format("waiting for rank {} in {}", awaited, describe(made_));
}

bool bridge::await_post(std::size_t place) {
    if (!waits()) {
        return false;
    }
    std::size_t const member = layout_.here[place];
    const std::atomic<std::uint64_t> &theirs = here_.block_of(place).awaited_rank;
    std::int32_t const rank = members_[member].value();
    // It may be waiting for somebody itself.
    auto const awaited = [&] {
        std::uint64_t const shown = theirs.load(std::memory_order_relaxed);
        return shown != 0 ? static_cast<std::int32_t>(shown - 1) : rank;
    };
    auto const has_come = [&] {
        return here_.lines().has_entered(group_rank{static_cast<int>(place)});
    };
    patience patient;
    status waited = engine_.wait_for_network(
        [&] {
            if (has_come()) {
                return true;
            }
            if (patient.is_over()) [[unlikely]] {
                show_awaited(rank);
            }
            return false;
        },
        [&] { return describe_wait(awaited()); });
    order_coming_in();
    // A speaker that gives up at the same time has more to say than that it is late.
    if (!waited && !has_come()) {
        give_up_on(awaited(), waited.take_failure());
        return false; // what is shown stays: the next one to give up wants to know
    }
    show_awaited(-1);
    return true;
}

bool bridge::wait_for(receipt &place, std::size_t member) {
    std::int32_t const rank = members_[member].value();
    patience patient;
    status waited = engine_.wait_for_network(
        [&] {
            if (place.done.load(std::memory_order_acquire)) {
                return true;
            }
            if (patient.is_over()) [[unlikely]] {
                if (shown_ < 0) {
                    show_awaited(rank);
                }
                mailbox_.ask(group_id_, members_[member], call_);
            }
            if (auto const answer = inbox_.take_answer()) [[unlikely]] {
                learn(*answer);
            }
            return broken_;
        },
        [&] { return describe_wait(shown_ >= 0 ? shown_ : rank); });
    if (!waited && !place.done.load(std::memory_order_acquire)) {
        give_up_on(shown_ >= 0 ? shown_ : rank, waited.take_failure());
    } else {
        show_awaited(-1);
    }
    if (place.done.load(std::memory_order_acquire)) {
        return true;
    }
    mailbox_.withdraw(inbox_, place);
    return false;
}

void bridge::tell(std::size_t member, std::uint64_t step, std::span<const std::byte> data) {
    mailbox_.send(group_id_, members_[member], {call_, step}, bytes_of(state_), data);
}

bool bridge::hear(std::size_t member, std::uint64_t step, std::span<std::byte> data) {
    if (!waits()) {
        return false;
    }
    call_state heard;
    receipt place{
        .from = members_[member], .tag = {call_, step}, .head = bytes_of(heard), .body = data};
    mailbox_.expect(group_id_, inbox_, place);
    if (!wait_for(place, member)) {
        return false;
    }
    merge(heard);
    return state_.agrees() && place.total_bytes == sizeof(heard) + data.size();
}

status bridge::send(std::size_t member, std::uint64_t step, std::span<const std::byte> data) {
    world_rank const to = members_[member];
    letter_tag const tag{call_, step};
    if (mailbox::is_eager(data.size())) {
        mailbox_.send(group_id_, to, tag, {}, data);
        return {};
    }
    std::optional<std::uint64_t> address;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            pump();
            address = mailbox_.take_readiness(inbox_, to, tag);
            return address.has_value();
        },
        [&] { return describe_wait(to.value()); }));
    if (*address == 0) {
        mailbox_.send(group_id_, to, tag, {}, data);
        return {};
    }
    outgoing_letter &letter = outgoing_->emplace_back(to, tag);
    status started = engine_.transport().put(to, *address, data.data(), data.size(), letter.landed);
    if (!started) {
        outgoing_->pop_back();
        return started;
    }
    return engine_.transport().flush(to, letter.landed);
}

// In the order in which they were put, as they land.
void bridge::pump() {
    while (!outgoing_->empty() && outgoing_->front().landed.is_done()) {
        mailbox_.tell_landed(group_id_, outgoing_->front().to, outgoing_->front().tag);
        outgoing_->pop_front();
    }
}

status bridge::finish_sends() {
    pump();
    if (outgoing_->empty()) {
        return {};
    }
    return engine_.wait_for_network(
        [this] {
            pump();
            return outgoing_->empty();
        },
        [this] { return describe_wait(outgoing_->front().to.value()); });
}

void bridge::expect(receipt &place, std::size_t member, std::uint64_t step,
                    std::span<std::byte> data) {
    place.from = members_[member];
    place.tag = {call_, step};
    place.body = data;
    mailbox_.expect(group_id_, inbox_, place);
}

status bridge::await(receipt &place) {
    status waited = engine_.wait_for_network(
        [&] {
            pump();
            return place.done.load(std::memory_order_acquire);
        },
        [&] { return describe_wait(place.from.value()); });
    if (waited) {
        mailbox_.collect(place);
    } else {
        mailbox_.withdraw(inbox_, place);
    }
    return waited;
}

void bridge::withdraw(receipt &place) { mailbox_.withdraw(inbox_, place); }

std::byte *bridge::scratch(std::size_t nbytes) {
    if (scratch_.size() < nbytes + cache_line_bytes) {
        scratch_.clear(); // nothing to copy
        scratch_.resize(nbytes + cache_line_bytes);
    }
    auto const address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
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
