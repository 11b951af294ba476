// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operations of both PMI versions, over the socket in PMI_FD. Keys and values are already
// escaped and split; the two implementations differ only in commands and framing.
#pragma once

#include "base/result.h"
#include "launch/pmi/connection.h"

#include <memory>
#include <optional>
#include <string>

namespace diomp::launch::pmi {

/// Longest key and value that all servers of both versions accept. Servers announce 1024 for
/// values, but some libraries and servers count the whole line.
inline constexpr std::size_t max_key_bytes = 63;
inline constexpr std::size_t max_value_bytes = 512;

class pmi_server {
public:
    virtual ~pmi_server() = default;

    /// Registers the rank of the job, whose name may be empty. First call.
    virtual status start(int rank, const std::string &job) = 0;
    /// The mapping of ranks to nodes; empty if the launcher does not provide it.
    virtual result<std::optional<std::string>> process_mapping() = 0;
    virtual status put(const std::string &key, const std::string &value) = 0;
    /// Empty if the key was not published.
    virtual result<std::optional<std::string>> get(const std::string &key) = 0;
    /// Barrier over all ranks; values put before are visible after it. Collective.
    virtual status fence() = 0;
    virtual status finalize() = 0;
    /// A single send. Any thread.
    virtual void abort(int code, const std::string &message) noexcept = 0;
};

/// `wire` must outlive the server.
std::unique_ptr<pmi_server> make_pmi1(pmi_connection &wire);
std::unique_ptr<pmi_server> make_pmi2(pmi_connection &wire);

} // namespace diomp::launch::pmi
