// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

#include <cstdlib>

namespace diomp::config {
namespace {

/// Only base/secret_variable.h reads the variable.
status ignore(settings & /*into*/, const std::string & /*text*/) { return {}; }

} // namespace

std::span<const setting_row> remote_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_REMOTE_DEVICES", "list", "",
         "Device services whose devices the program uses in addition: "
         "host[:port][@first][*count], separated by commas: count devices from number first "
         "(default 0) on; without a count all from there on. diomp-run --remote-devices starts "
         "services and sets it.",
         value<any_text>([](auto &s) -> auto & { return s.remote.devices; })},
        {"DIOMP_LOCAL_DEVICES", "on|off", "on",
         "off: the program sees remote devices only, numbered from 0.",
         value<on_off>([](auto &s) -> auto & { return s.remote.has_local_devices; })},
        {"DIOMP_SPLIT_THRESHOLD", "size", "auto",
         "Transfers with remote devices up to this size are sent inside the messages that start "
         "regions; larger ones directly between the memories. diomp-bench remote finds the best "
         "value.",
         value<auto_size>([](auto &s) -> auto & { return s.remote.split_threshold_bytes; })},
        {"DIOMP_POSTED_REGIONS", "on|off", "on",
         "Short nowait regions on remote devices that copy nothing back are complete for OpenMP "
         "once they have been sent; later operations on the device are ordered after them there. "
         "off: complete when they have run.",
         value<on_off>([](auto &s) -> auto & { return s.remote.posted_regions; })},
        {"DIOMP_TOKEN",
         "text",
         "",
         "Shared secret of clients and device services. Services remove it from their environment "
         "at start.",
         {ignore,
          [](const settings &) { return std::string(std::getenv("DIOMP_TOKEN") ? "(set)" : ""); }}},
        {"DIOMP_TOKEN_FILE",
         "path",
         "",
         "A file with the shared secret, which no other user may be able to read.",
         {ignore,
          [](const settings &) {
              char const *const file = std::getenv("DIOMP_TOKEN_FILE");
              return std::string(file != nullptr ? file : "");
          }}},
    });
    return rows;
}

} // namespace diomp::config
