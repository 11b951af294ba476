// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages between members of a group on different nodes, matched by group, call and step.
//
// Glossary: letter: one message, cut into fragments that the conduit carries. inbox: the letters of
// one group. receipt: a place that waits for a letter. Letters of up to eager_bytes go at once and
// are kept until somebody expects them. Larger ones wait until the receiver has told that it does,
// and where: then they are put there, and a note follows when they have landed. landing: memory in
// the own slot for letters whose place is outside of it. journal: what this rank made of its last
// calls on a group; members that wait too long for a letter ask for it.
#pragma once

#include "conduit/engine.h"
#include "group/call_state.h"
#include "group/local_group.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace diomp::group {

/// Number of a call on a group, and a step of it.
struct letter_tag {
    std::uint64_t call = 0;
    std::uint64_t step = 0;
    friend auto operator<=>(const letter_tag &, const letter_tag &) = default;
};

/// Steps of a call. Letters of the first kind begin with a call_state.
enum letter_step : std::uint64_t {
    step_state = 0, ///< + number of the exchange
    step_payloads = 1024,
    step_list = 2048, ///< of the members of a group
    step_data = 4096, ///< from here on
};

/// The first bytes of the letter go to `head`, the rest to `body`; what is too much is dropped.
struct receipt {
    world_rank from;
    letter_tag tag;
    std::span<std::byte> head;
    std::span<std::byte> body;
    std::size_t total_bytes = 0; ///< of the letter, once it is there
    /// Where the body lands first, as an offset in the own slot plus one; 0: in its place.
    std::uint64_t landing = 0;
    std::atomic<bool> done{false};
};

/// What a member answers when it is asked about a call that it has made.
struct call_report {
    call_state state;
    std::int32_t awaited = -1; ///< the rank of the world that it waits for there; -1: nobody
    std::int32_t unused = 0;
};

/// Any thread.
class inbox {
public:
    /// A call begins: its number, and the caller's opinion. Letters of earlier calls are void.
    void begin_call(std::uint64_t call, const call_state &own);
    /// For those who ask.
    void update(const call_state &state, std::int32_t awaited);
    /// The newest answer about the current call that has not been taken yet.
    std::optional<call_report> take_answer();
    /// A letter of an earlier call that disagrees with what this rank made of it.
    std::optional<std::pair<call_state, call_state>> take_late();

private:
    friend class mailbox;
    static constexpr std::size_t journal_length = 64;

    struct letter {
        receipt *expected = nullptr;
        std::vector<std::byte> kept; ///< if it is not expected yet
        bool started = false;        ///< a fragment has come
        std::size_t total_bytes = 0;
        std::size_t arrived_bytes = 0;
        bool goes_straight = false; ///< to where it is expected, by a conduit that can do that
        [[nodiscard]] bool is_complete() const { return started && arrived_bytes == total_bytes; }
    };
    struct journal_entry {
        std::uint64_t call = 0;
        call_report report;
    };
    using letter_key = std::pair<letter_tag, world_rank>;

    void compare_late(const letter_tag &tag, std::span<const std::byte> head);

    std::mutex mutex_; ///< leaf lock over everything
    std::uint64_t call_ = 0;
    std::map<letter_key, letter> letters_;
    /// Receivers that expect a large letter, and the address that it can be put to, or 0.
    std::vector<std::pair<letter_key, std::uint64_t>> ready_;
    std::array<journal_entry, journal_length> journal_;
    std::optional<call_report> answer_;
    std::atomic<bool> has_answer_{false};
    std::optional<std::pair<call_state, call_state>> late_;
    std::atomic<bool> has_late_{false};
};

/// One per rank. Any thread.
class mailbox {
public:
    static constexpr std::size_t eager_bytes = std::size_t{16} << 10;
    /// The same of letters with a head, of which only few can be on their way.
    static constexpr std::size_t most_kept_bytes = std::size_t{72} << 10;
    static constexpr std::size_t most_head_bytes = 64;

    /// Largest letter that lands beside its place, and number of those at a time.
    static constexpr std::size_t landing_bytes = std::size_t{256} << 10;
    static constexpr std::size_t max_landings = 32;

    /// Before engine.start().
    mailbox(conduit::engine &engine, workspace &space, std::byte *own_slot);
    ~mailbox();
    mailbox(const mailbox &) = delete;
    mailbox &operator=(const mailbox &) = delete;

    /// Letters may have come before. The id is the same on all members, and never used again.
    inbox &open(std::uint64_t group_id);
    void close(std::uint64_t group_id);

    /// Sends fragments. The letter is `head`, then `body`; both may be reused on return. For
    /// letters above eager_bytes only when the receiver is ready.
    void send(std::uint64_t group_id, world_rank to, letter_tag tag,
              std::span<const std::byte> head, std::span<const std::byte> body);
    [[nodiscard]] static bool is_eager(std::size_t nbytes) { return nbytes <= eager_bytes; }
    /// The receiver of a large letter is ready; where it can be put to, 0: only sent. Once per
    /// letter.
    std::optional<std::uint64_t> take_readiness(inbox &own, world_rank of, letter_tag tag);
    /// Starts to send a letter in one message, if the conduit can: `done` then counts until `body`
    /// may be reused. false: send it, or put it and tell_landed.
    result<bool> send_whole(std::uint64_t group_id, world_rank to, letter_tag tag,
                            std::span<const std::byte> head, std::span<const std::byte> body,
                            conduit::completion &done);
    /// A large letter has been put and is visible there.
    void tell_landed(std::uint64_t group_id, world_rank to, letter_tag tag);

    /// Large letters must have the size that the sender will send, who is told that they are
    /// expected if it does not know. The receipt must live until it is collected or withdrawn.
    void expect(std::uint64_t group_id, inbox &own, receipt &place, bool tells_sender = true);
    /// After done: the body is in its place.
    void collect(receipt &place);
    void withdraw(inbox &own, receipt &place);
    /// Its landing may be used again: nobody will put anything there any more.
    void give_back(receipt &place);

    /// Asks a member what it has made of a call. The answer, if there is one, comes to the inbox.
    void ask(std::uint64_t group_id, world_rank whom, std::uint64_t call);

private:
    struct fragment_header {
        std::uint64_t group_id;
        letter_tag tag;
        std::uint64_t total_bytes;
        std::uint64_t offset;
    };
    struct note {
        std::uint64_t group_id;
        letter_tag tag;
        std::uint64_t address;
    };
    struct answer {
        std::uint64_t group_id;
        std::uint64_t call;
        call_report report;
    };

    void on_fragment(const conduit::message &incoming);
    void on_ready(const conduit::message &incoming);
    void on_whole(const conduit::message &incoming);
    std::byte *place_whole(const conduit::message &announced, std::size_t nbytes);
    void on_landed(const conduit::message &incoming);
    void on_question(const conduit::message &incoming);
    void on_answer(const conduit::message &incoming);
    inbox *find(std::uint64_t group_id);
    /// With its lock. None if the group was closed lately: then the letter comes too late.
    struct locked_inbox {
        inbox *found = nullptr;
        std::unique_lock<std::mutex> lock;
    };
    locked_inbox lock_for_letter(std::uint64_t group_id);
    std::uint64_t take_landing(); ///< offset plus one; 0: none

    conduit::engine &engine_;
    workspace &space_;
    std::byte *own_slot_;
    conduit::handler_id fragment_handler_;
    conduit::handler_id ready_handler_;
    conduit::handler_id whole_handler_;
    conduit::handler_id landed_handler_;
    conduit::handler_id question_handler_;
    conduit::handler_id answer_handler_;
    std::mutex mutex_; ///< over the table; taken before an inbox's, never after it
    std::unordered_map<std::uint64_t, std::unique_ptr<inbox>> inboxes_;
    static constexpr std::size_t num_remembered = 256;
    std::array<std::uint64_t, num_remembered> closed_{}; ///< ids plus one, the last ones
    std::size_t num_closed_ = 0;
    std::mutex landings_mutex_; ///< leaf lock
    std::vector<std::uint64_t> free_landings_;
    std::size_t num_landings_ = 0;
};

} // namespace diomp::group
