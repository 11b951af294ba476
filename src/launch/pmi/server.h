// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What both versions of PMI offer, over the socket in PMI_FD. Keys and values have been escaped and
// cut; the two classes differ in words and framing alone.
#pragma once

#include "base/result.h"
#include "launch/pmi/connection.h"

#include <memory>
#include <optional>
#include <string>

namespace diomp::launch::pmi {

/// Longest key and value of either version, as all servers take them. Servers announce 1024 for
/// values, but some libraries and servers count the whole line.
inline constexpr std::size_t max_key_bytes = 63;
inline constexpr std::size_t max_value_bytes = 512;

class server {
public:
    virtual ~server() = default;

    /// Introduces the rank of the job, whose name may be empty. First call.
    virtual status start(int rank, const std::string &job) = 0;
    /// Which ranks share a node; nothing if the launcher does not tell.
    virtual result<std::optional<std::string>> process_mapping() = 0;
    virtual status put(const std::string &key, const std::string &value) = 0;
    /// Nothing if nobody has put the key.
    virtual result<std::optional<std::string>> get(const std::string &key) = 0;
    /// All ranks meet; what they put before is there afterwards.
    virtual status fence() = 0;
    virtual status finalize() = 0;
    /// One send; any thread.
    virtual void abort(int code, const std::string &message) noexcept = 0;
};

/// `wire` outlives the server.
std::unique_ptr<server> make_pmi1(connection &wire);
std::unique_ptr<server> make_pmi2(connection &wire);

} // namespace diomp::launch::pmi
