// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Channels: checks of arguments, and waits for one or several ends.
#include "diomp/channel.h"

#include "api/internal/state.h"
#include "channels/channel_registry.h"
#include "messaging/engine.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

using namespace diomp;

namespace {

std::string describe(ompx_channel_t channel) {
    return fmt::format("channel={}", fmt::ptr(channel));
}

status check_shape(std::size_t nbytes, int depth) {
    DIOMP_TRY(api::check_size(nbytes));
    if (depth < 1 || depth > OMPX_CHANNEL_MAX_DEPTH) {
        return error(OMPX_ERR_ARG, fmt::format("a channel cannot be {} messages deep", depth),
                     fmt::format("pass a depth from 1 to {}", OMPX_CHANNEL_MAX_DEPTH));
    }
    constexpr std::size_t max_nbytes = std::size_t{1} << 39; // fits the arrival word
    if (nbytes > max_nbytes / static_cast<std::size_t>(depth)) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("{} messages of {} bytes exceed any segment", depth, nbytes),
                     "use smaller or fewer messages");
    }
    return {};
}

/// An end of the kind that the call needs. End is sender_end or receiver_end.
template <typename End>
result<End *> find_end(runtime::runtime &running, ompx_channel_t channel) {
    constexpr bool sends = std::is_same_v<End, channels::sender_end>;
    auto found = running.channels().find(channel);
    DIOMP_TRY(found);
    if ((found.value()->key().end == OMPX_CHANNEL_SENDER) != sends) {
        return error(
            OMPX_ERR_STATE, fmt::format("this end of the channel {}", sends ? "receives" : "sends"),
            sends ? "pass an end of OMPX_CHANNEL_SENDER" : "pass an end of OMPX_CHANNEL_RECEIVER");
    }
    return static_cast<End *>(found.value());
}

enum class waiting { until_ready, none };

/// Runs then(end, call_stats) -> status once the end is ready. Without waiting, OMPX_ERR_BUSY if it
/// is not.
template <typename End, typename Then>
int use_end(const char *function, const void *site, ompx_channel_t channel, waiting how,
            Then &&then) {
    bool is_busy = false;
    int const outcome = api::call(
        function, site, [&] { return describe(channel); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = find_end<End>(running, channel);
            DIOMP_TRY(found);
            End &end = *found.value();
            if (!end.is_ready()) {
                if (how == waiting::until_ready) {
                    DIOMP_TRY(end.wait());
                    return then(end, stats);
                }
                running.connection().engine().poll();
                is_busy = !end.is_ready();
                if (is_busy) {
                    return {};
                }
            }
            DIOMP_TRY(end.check());
            return then(end, stats);
        });
    return outcome == OMPX_SUCCESS && is_busy ? OMPX_ERR_BUSY : outcome;
}

int send(const char *function, const void *site, ompx_channel_t channel, waiting how,
         const void *data) {
    return use_end<channels::sender_end>(
        function, site, channel, how,
        [&](channels::sender_end &end, api::call_stats &stats) -> status {
            std::size_t const nbytes = end.shape().nbytes;
            if (nbytes > 0) {
                DIOMP_TRY(api::check_pointer(data, "data"));
            }
            auto sent = end.send(data, nbytes);
            DIOMP_TRY(sent);
            stats = {rma::name(sent.value()), nbytes};
            return {};
        });
}

int acquire(const char *function, const void *site, ompx_channel_t channel, waiting how,
            void *&buffer) {
    return use_end<channels::sender_end>(
        function, site, channel, how, [&](channels::sender_end &end, api::call_stats &) -> status {
            auto acquired = end.acquire();
            DIOMP_TRY(acquired);
            buffer = acquired.value();
            return {};
        });
}

int receive(const char *function, const void *site, ompx_channel_t channel, waiting how,
            void *&data) {
    return use_end<channels::receiver_end>(
        function, site, channel, how,
        [&](channels::receiver_end &end, api::call_stats &) -> status {
            data = end.receive().data;
            return {};
        });
}

/// A call on several ends.
struct end_list {
    std::span<const ompx_channel_t> handles;
    std::vector<channels::channel_end *> ends; ///< null: left out
    std::size_t first = 0;                     ///< where the search begins
    bool is_empty = true;
    bool is_direct = true; ///< all become ready by stores

    status find(runtime::runtime &running) {
        for (ompx_channel_t const each : handles) {
            channels::channel_end *end = nullptr;
            if (each != OMPX_CHANNEL_NONE) {
                auto found = running.channels().find(each);
                DIOMP_TRY(found);
                end = found.value();
                is_empty = false;
                is_direct = is_direct && end->is_connected() && end->is_direct();
            }
            ends.push_back(end);
        }
        return {};
    }
    /// The number of an end that is ready, or OMPX_NO_INDEX.
    [[nodiscard]] std::size_t ready() const {
        for (std::size_t i = 0; i < ends.size(); ++i) {
            std::size_t const at = (first + i) % ends.size();
            if (ends[at] != nullptr && ends[at]->is_ready()) {
                return at;
            }
        }
        return OMPX_NO_INDEX;
    }
    [[nodiscard]] std::string describe_wait() const {
        std::string text = fmt::format("waiting for one of {} channels:", ends.size());
        for (std::size_t i = 0; i < ends.size() && i < 4; ++i) {
            text += ends[i] == nullptr ? std::string() : " " + ends[i]->describe_wait() + ";";
        }
        return text;
    }
};

/// Where the calling thread's next search begins, so that a busy channel does not hide others.
thread_local std::size_t next_search = 0;

/// Returns 1 if an end is ready, 0 or a negative status.
int find_ready(const char *function, const void *site, const ompx_channel_t *channels,
               std::size_t count, std::size_t *index, waiting how) {
    std::size_t found = OMPX_NO_INDEX;
    int const outcome = api::call(
        function, site,
        [&] { return fmt::format("channels={}, count={}", fmt::ptr(channels), count); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(index, "index"));
            if (count > 0) {
                DIOMP_TRY(api::check_pointer(channels, "channels"));
            }
            end_list list{.handles = {channels, count}, .ends = {}};
            DIOMP_TRY(list.find(running));
            if (!list.is_empty) {
                list.first = next_search % count;
                auto &engine = running.connection().engine();
                auto const ready = [&] { return (found = list.ready()) != OMPX_NO_INDEX; };
                if (how == waiting::none) {
                    if (!ready()) {
                        engine.poll();
                        static_cast<void>(ready());
                    }
                } else {
                    auto const describe = [&] { return list.describe_wait(); };
                    DIOMP_TRY(list.is_direct ? engine.wait(ready, describe)
                                             : engine.wait_for_message(ready, describe));
                }
            }
            *index = found;
            next_search = found == OMPX_NO_INDEX ? next_search : found + 1;
            return {};
        });
    return outcome == OMPX_SUCCESS ? static_cast<int>(found != OMPX_NO_INDEX) : outcome;
}

} // namespace

extern "C" {

int ompx_channel_create(int partner, int tag, ompx_channel_end_t end, size_t nbytes, int depth,
                        ompx_channel_t *channel) noexcept {
    return api::call(
        "ompx_channel_create", DIOMP_SITE,
        [&] {
            return fmt::format("partner={}, tag={}, end={}, nbytes={}, depth={}", partner, tag,
                               static_cast<int>(end), nbytes, depth);
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(channel, "channel"));
            DIOMP_TRY(api::check_rank(running, partner));
            DIOMP_TRY(check_shape(nbytes, depth));
            if (end != OMPX_CHANNEL_SENDER && end != OMPX_CHANNEL_RECEIVER) {
                return error(OMPX_ERR_ARG, fmt::format("{} is not an end", static_cast<int>(end)),
                             "pass OMPX_CHANNEL_SENDER or OMPX_CHANNEL_RECEIVER");
            }
            auto made = running.channels().create(
                {world_rank{partner}, static_cast<std::uint32_t>(tag), end},
                {nbytes, static_cast<std::uint32_t>(depth)});
            DIOMP_TRY(made);
            auto handle = running.channels().publish(made.take());
            DIOMP_TRY(handle);
            *channel = handle.value();
            return {};
        });
}

int ompx_channel_free(ompx_channel_t *channel) noexcept {
    return api::call(
        "ompx_channel_free", DIOMP_SITE,
        [&] { return fmt::format("channel={}", fmt::ptr(channel)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(channel, "channel"));
            if (*channel == OMPX_CHANNEL_NONE) {
                return {};
            }
            auto removed = running.channels().remove(*channel);
            DIOMP_TRY(removed);
            *channel = OMPX_CHANNEL_NONE;
            return running.channels().close(removed.take());
        });
}

int ompx_channel_nbytes(ompx_channel_t channel, size_t *nbytes) noexcept {
    return api::call(
        "ompx_channel_nbytes", DIOMP_SITE, [&] { return describe(channel); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(nbytes, "nbytes"));
            auto found = running.channels().find(channel);
            DIOMP_TRY(found);
            *nbytes = found.value()->shape().nbytes;
            return {};
        });
}

int ompx_channel_send(ompx_channel_t channel, const void *data) noexcept {
    return send("ompx_channel_send", DIOMP_SITE, channel, waiting::until_ready, data);
}

int ompx_channel_try_send(ompx_channel_t channel, const void *data) noexcept {
    return send("ompx_channel_try_send", DIOMP_SITE, channel, waiting::none, data);
}

void *ompx_channel_acquire(ompx_channel_t channel) noexcept {
    void *buffer = nullptr;
    acquire("ompx_channel_acquire", DIOMP_SITE, channel, waiting::until_ready, buffer);
    return buffer;
}

int ompx_channel_try_acquire(ompx_channel_t channel, void **buffer) noexcept {
    if (buffer == nullptr) {
        return api::fail("ompx_channel_try_acquire", describe(channel),
                         api::check_pointer(buffer, "buffer").failure());
    }
    return acquire("ompx_channel_try_acquire", DIOMP_SITE, channel, waiting::none, *buffer);
}

int ompx_channel_commit(ompx_channel_t channel) noexcept {
    return api::call(
        "ompx_channel_commit", DIOMP_SITE, [&] { return describe(channel); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = find_end<channels::sender_end>(running, channel);
            DIOMP_TRY(found);
            auto sent = found.value()->commit();
            DIOMP_TRY(sent);
            stats = {rma::name(sent.value()), found.value()->shape().nbytes};
            return {};
        });
}

void *ompx_channel_receive(ompx_channel_t channel) noexcept {
    void *data = nullptr;
    receive("ompx_channel_receive", DIOMP_SITE, channel, waiting::until_ready, data);
    return data;
}

int ompx_channel_try_receive(ompx_channel_t channel, void **data) noexcept {
    if (data == nullptr) {
        return api::fail("ompx_channel_try_receive", describe(channel),
                         api::check_pointer(data, "data").failure());
    }
    return receive("ompx_channel_try_receive", DIOMP_SITE, channel, waiting::none, *data);
}

int ompx_channel_release(ompx_channel_t channel) noexcept {
    return api::call(
        "ompx_channel_release", DIOMP_SITE, [&] { return describe(channel); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto found = find_end<channels::receiver_end>(running, channel);
            DIOMP_TRY(found);
            return found.value()->release();
        });
}

int ompx_channel_test(ompx_channel_t channel) noexcept {
    bool is_ready = false;
    int const outcome = api::call(
        "ompx_channel_test", DIOMP_SITE, [&] { return describe(channel); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto found = running.channels().find(channel);
            DIOMP_TRY(found);
            is_ready = found.value()->is_ready();
            if (!is_ready) {
                running.connection().engine().poll();
                is_ready = found.value()->is_ready();
            }
            return {};
        });
    return outcome == OMPX_SUCCESS ? static_cast<int>(is_ready) : outcome;
}

int ompx_channel_wait_any(const ompx_channel_t *channels, size_t count, size_t *index) noexcept {
    int const outcome = find_ready("ompx_channel_wait_any", DIOMP_SITE, channels, count, index,
                                   waiting::until_ready);
    return outcome < 0 ? outcome : OMPX_SUCCESS;
}

int ompx_channel_test_any(const ompx_channel_t *channels, size_t count, size_t *index) noexcept {
    return find_ready("ompx_channel_test_any", DIOMP_SITE, channels, count, index, waiting::none);
}

} // extern "C"
