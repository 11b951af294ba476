// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Variables that are `declare target`: their copies lie in the images of devices, not in segments,
// so no offset names them. What does is their place in the program (identity.h), the same on every
// rank, with their name and size for programs that differ. A rank that wants another's copy asks
// for it by that once and keeps the answer, since images stay where they are until libomptarget
// ends, and then the owner refuses what comes: copies on host devices are registered
// (memory/directory.h) as long as they are there, and to those on accelerators the owner itself
// copies.
//
// To answer may mean to load the program's images, which takes locks of libomptarget for a while,
// so a thread of its own does it, not the handler of the question. Other ranks may ask before the
// program here has registered its images; they wait until main begins.
#pragma once

#include "conduit/call.h"
#include "memory/directory.h"
#include "offload/accelerators.h"
#include "offload/identity.h"
#include "offload/ledger.h"
#include "offload/variable_table.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace diomp::offload {

/// On the host's side.
struct variable {
    const std::byte *host = nullptr;
    std::size_t nbytes = 0;
    identity what;
    std::string name; ///< the linker's
};

/// The copy that another rank has.
struct remote_copy {
    std::uint64_t address = 0; ///< as the owner sees it
    std::int32_t device = 0;   ///< of the owner
    bool on_accelerator = false;
    bool is_constant = false; ///< the owner cannot write it
};

/// Any thread, but for questions to libomptarget not in handlers. Create before engine.start().
class variables {
public:
    variables(ledger &devices, memory::directory &registered, const memory::segment &host,
              conduit::engine &engine, conduit::call_service &calls);
    ~variables();
    variables(const variables &) = delete;
    variables &operator=(const variables &) = delete;

    /// libomptarget's table; null until it has been loaded.
    using table_source = const diomp_variable_table *(*)();
    /// Where the own copy of a variable is; loads it if it is not there.
    using copy_finder = std::function<result<end>(const variable &of, int device)>;
    /// Before all else.
    void use(table_source table, copy_finder find_copy);
    /// Questions are answered from now on.
    void open();
    /// Copies go away: nobody reaches them any more after this. Waits for the question that is
    /// being answered.
    void close();

    /// The variable that `host` lies in.
    std::optional<variable> find(const void *host);
    /// Brings the program's images to an own device.
    status load(int device);

    /// The copy of `owner` on its device `device`, or on the device in the same place as this
    /// rank's device of that number, see ledger::find. Waits for the owner on first use.
    result<remote_copy> ask(world_rank owner, int device, const variable &of);

    /// Bytes from an address of an own accelerator to the end of the variable there, of those that
    /// somebody has asked about; nullopt: it is in none.
    [[nodiscard]] std::optional<std::uint64_t> left_in(int device, std::uint64_t address) const;

    /// Ends the thread. Questions get no answer any more.
    void stop();

private:
    enum class outcome : std::uint32_t { found, no_variable, no_device, no_copy, closed };
    struct question {
        conduit::request_header header;
        identity what;
        std::uint32_t name = 0; ///< its hash
        std::int32_t device = 0;
        std::int32_t place = -1; ///< of the asker's device among those that it drives
    };
    struct answer {
        std::uint64_t address = 0;
        std::uint64_t nbytes = 0;
        outcome how = outcome::no_variable;
        std::int32_t device = 0;
        std::uint16_t on_accelerator = 0;
        std::uint16_t is_constant = 0;
    };
    struct open_question {
        world_rank asker;
        question asked;
    };
    using key = std::tuple<int, int, std::uint32_t, std::uint64_t>; ///< rank, device, place

    [[nodiscard]] const diomp_variable_table *table() const {
        return table_ == nullptr ? nullptr : table_();
    }
    void learn(const diomp_variable_table &from);
    [[nodiscard]] std::optional<variable> find_asked(const question &asked);
    [[nodiscard]] error explain(world_rank owner, int device, const variable &of,
                                const answer &told) const;

    // The owner's side.
    void on_question(const conduit::message &incoming);
    void serve(); ///< body of the thread
    answer find_answer(const question &asked);
    status expose(int device, const variable &of, const end &copy);

    ledger &devices_;
    memory::directory &registered_;
    const memory::segment &host_;
    conduit::call_service &calls_;
    conduit::handler_id question_handler_;
    table_source table_ = nullptr;
    copy_finder find_copy_;

    mutable std::shared_mutex mutex_; ///< leaf lock over the next four
    std::uint64_t generation_ = 0;    ///< of known_; see variable_table.h
    std::map<std::uintptr_t, variable> known_;
    std::map<key, remote_copy> kept_;
    /// Of accelerators, what has been told of: by device and address, the size.
    std::map<std::pair<int, std::uint64_t>, std::uint64_t> told_;

    std::mutex answering_; ///< held while a question is answered; over the next two
    bool is_closed_ = false;
    std::vector<std::uint64_t> exposed_; ///< ranges that are registered for others

    std::mutex questions_mutex_; ///< leaf lock over the rest
    std::condition_variable questions_changed_;
    std::deque<open_question> questions_;
    bool is_open_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace diomp::offload
