// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/ucx/path.h"

#include "base/log.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace diomp::conduit::ucx {
namespace {

std::string endpoint_info(channel &to) {
    char *text = nullptr;
    std::size_t nbytes = 0;
    std::FILE *const stream = ::open_memstream(&text, &nbytes);
    if (stream == nullptr) {
        return {};
    }
    to.owner.owner.ucx().ucp_ep_print_info(to.endpoint, stream);
    std::fclose(stream);
    std::string info(text, nbytes);
    std::free(text);
    return info;
}

} // namespace

transports read_endpoint_info(const std::string &text) {
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
        // "#  put: ...": the thresholds of put. There are none where UCX emulates it by messages.
        found.moves_alone = found.moves_alone || word == "put:" || word == "put";
    }
    return found;
}

void choose_path(channel &to, const peer_card &card) {
    context const &process = to.owner.owner;
    library const &ucx = process.ucx();
    std::string const info = endpoint_info(to);
    log(log_level::debug, "UCX endpoint to {}:\n{}", to.target.name(), info);
    transports const found = read_endpoint_info(info);
    to.cuts_bulk = !found.moves_alone;
    std::string const &wish = process.options().network_rma;
    bool const wanted = wish == "rdma" || (wish == "auto" && found.moves_alone);
    bool const needs_key = wanted || process.options().native_atomics;
    std::string reason;
    if (needs_key && card.remote_key.empty()) {
        reason = "its segment is not registered with the network";
    } else if (ucs_status_t const code =
                   needs_key
                       ? ucx.ucp_ep_rkey_unpack(to.endpoint, card.remote_key.data(), &to.remote_key)
                       : UCS_OK;
               code != UCS_OK) {
        to.remote_key = nullptr;
        reason = ucx.ucs_status_string(code);
    } else if (!wanted) {
        reason = wish == "messages" ? "as DIOMP_NETWORK_RMA says"
                                    : "this network's puts and gets need the target's processor";
    } else {
        to.has_rdma = true;
        reason = wish == "rdma" ? "as DIOMP_NETWORK_RMA says" : "the network does them alone";
    }
    std::string const path = "ucx (" + found.names +
                             (to.has_rdma ? ", rdma" : ", active messages") +
                             (process.options().native_atomics ? ", native atomics)" : ")");
    if (to.target.path().empty()) {
        log(log_level::info, "{} is reached by {}: {}", to.target.name(), path, reason);
    }
    to.target.learn_path(path + ": " + reason);
}

} // namespace diomp::conduit::ucx
