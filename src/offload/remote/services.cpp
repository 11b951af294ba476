// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parser of DIOMP_REMOTE_DEVICES.
#include "offload/remote/client.h"

#include <fmt/format.h>

#include <charconv>

namespace diomp::offload::remote {
namespace {

constexpr int max_devices = 4096;

std::optional<int> parse_number(std::string_view text, int minimum, int maximum) {
    int value = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || value < minimum ||
        value > maximum) {
        return std::nullopt;
    }
    return value;
}

result<service_address> parse_service(std::string_view text) {
    auto const invalid = [&](const char *why) {
        return error(OMPX_ERR_ARG, fmt::format("device service '{}': {}", text, why),
                     "write host[:port][@first][*count], as in hosta:7653@2*2");
    };
    service_address found;
    std::string_view rest = text;
    if (auto const star = rest.rfind('*'); star != std::string_view::npos) {
        auto const count = parse_number(rest.substr(star + 1), 1, max_devices);
        if (!count) {
            return invalid("the number of devices is not a number from 1 to 4096");
        }
        found.count = *count;
        rest = rest.substr(0, star);
    }
    if (auto const at = rest.rfind('@'); at != std::string_view::npos) {
        auto const first = parse_number(rest.substr(at + 1), 0, max_devices - 1);
        if (!first) {
            return invalid("the first device is not a number from 0 to 4095");
        }
        found.first = *first;
        rest = rest.substr(0, at);
    }
    if (rest.starts_with('[')) { // IPv6
        auto const end = rest.find(']');
        if (end == std::string_view::npos) {
            return invalid("']' is missing");
        }
        found.host = rest.substr(1, end - 1);
        rest = rest.substr(end + 1);
    } else {
        auto const colon = rest.find(':');
        found.host = rest.substr(0, colon);
        rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon);
    }
    if (!rest.empty()) {
        auto const port = rest[0] == ':' ? parse_number(rest.substr(1), 1, 65535) : std::nullopt;
        if (!port) {
            return invalid("the port is not a number from 1 to 65535");
        }
        found.port = *port;
    }
    if (found.host.empty()) {
        return invalid("the host is missing");
    }
    return found;
}

} // namespace

result<std::vector<service_address>> parse_services(const std::string &text) {
    std::vector<service_address> services;
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const comma = rest.find(',');
        auto service = parse_service(rest.substr(0, comma));
        DIOMP_TRY(service);
        services.push_back(service.take());
        rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
    return services;
}

} // namespace diomp::offload::remote
