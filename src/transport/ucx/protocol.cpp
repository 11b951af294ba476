// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/protocol.h"

#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace diomp::transport::ucx {
namespace {

std::string endpoint_info(endpoint &to) {
    char *text = nullptr;
    std::size_t nbytes = 0;
    std::FILE *const stream = ::open_memstream(&text, &nbytes);
    if (stream == nullptr) {
        return {};
    }
    to.owner.owner.ucx().ucp_ep_print_info(to.ep, stream);
    std::fclose(stream);
    std::string info(text, nbytes);
    std::free(text);
    return info;
}

} // namespace

transports parse_endpoint_info(const std::string &text) {
    transports found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string hash;
        std::string word;
        words >> hash >> word;
        // "#  lane[0]:  1:tcp/eth0.0 md[1] -> ...": the transport of a lane.
        if (word.starts_with("lane[")) {
            words >> word;
            auto const begin = word.find(':') + 1;
            std::string const name = word.substr(begin, word.find('/') - begin);
            if (found.names.find(name) == std::string::npos) {
                found.names += found.names.empty() ? name : ", " + name;
            }
        }
        // "#  put: ...": thresholds of put, which are absent where UCX emulates put by messages.
        found.has_native_rma = found.has_native_rma || word == "put:" || word == "put";
    }
    return found;
}

void select_protocol(endpoint &to, const address_blob &blob) {
    context const &ctx = to.owner.owner;
    library const &ucx = ctx.ucx();
    std::string const info = endpoint_info(to);
    log(log_level::debug, "UCX endpoint to {}:\n{}", to.target.name(), info);
    transports const found = parse_endpoint_info(info);
    to.uses_chunks = !found.has_native_rma;
    std::string const &requested = ctx.options().network_rma;
    bool const wanted = requested == "rdma" || (requested == "auto" && found.has_native_rma);
    bool const needs_key = wanted || ctx.options().native_atomics;
    std::string reason;
    if (needs_key && blob.remote_key.empty()) {
        reason = "its segment is not registered with the network";
    } else if (ucs_status_t const code = needs_key ? to.rdma.unpack_key(blob.remote_key) : UCS_OK;
               code != UCS_OK) {
        reason = ucx.ucs_status_string(code);
    } else if (!wanted) {
        reason = requested == "messages"
                     ? "set by DIOMP_NETWORK_RMA"
                     : "puts and gets of this network need the target's processor";
    } else {
        to.rdma.use_for_transfers();
        reason =
            requested == "rdma" ? "set by DIOMP_NETWORK_RMA" : "the network has native put and get";
    }
    std::string const path = "ucx (" + found.names +
                             (to.rdma.is_used_for_transfers() ? ", rdma" : ", active messages") +
                             (ctx.options().native_atomics ? ", native atomics)" : ")");
    if (to.target.path().empty()) {
        log(log_level::info, "{} is reached by {}: {}", to.target.name(), path, reason);
    }
    to.target.set_path(path + ": " + reason);
}

} // namespace diomp::transport::ucx
