// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/settings.h"

#include "config/internal/rows.h"

#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace diomp {

std::span<const setting_row> setting_rows() {
    // Never destroyed: calls may still read settings while the process ends.
    static auto const &all = *[] {
        auto *const rows = new std::vector<setting_row>;
        for (auto const module :
             {config::memory_rows(), config::transport_rows(), config::messaging_rows(),
              config::rma_rows(), config::coll_rows(), config::runtime_rows(),
              config::device_rows(), config::offload_rows(), config::device_coll_rows(),
              config::remote_rows()}) {
            rows->insert(rows->end(), module.begin(), module.end());
        }
        return rows;
    }();
    return all;
}

result<settings> read_settings(std::vector<std::string> &unknown,
                               function_ref<const char *(const char *)> lookup) {
    settings values;
    for (setting_row const &row : setting_rows()) {
        const char *text = lookup(row.name);
        if (text == nullptr || (*text == '\0' && std::strlen(row.default_value) > 0)) {
            continue;
        }
        if (auto parsed = row.value.parse(values, text); !parsed) {
            return error(
                OMPX_ERR_ARG, fmt::format("{}={}: {}", row.name, text, parsed.failure().message()),
                fmt::format("{} is {}; default {}", row.name, row.type, row.default_value));
        }
    }
    // Variables of the launcher, of diompcc, of builds, and of modules and CMake.
    constexpr std::array<const char *, 12> foreign{
        "DIOMP_LAUNCH_", "DIOMP_RANK=", "DIOMP_RSH=",  "DIOMP_TEST_",
        "DIOMP_CC=",     "DIOMP_CXX=",  "DIOMP_FC=",   "DIOMP_DPU_SYSROOT=",
        "DIOMP_DPU_LD=", "DIOMP_LLVM",  "DIOMP_ROOT=", "DIOMP_DIR="};
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        std::string const variable(*entry);
        if (!variable.starts_with("DIOMP_")) {
            continue;
        }
        bool known = false;
        for (const char *prefix : foreign) {
            known = known || variable.starts_with(prefix);
        }
        for (setting_row const &row : setting_rows()) {
            known = known || variable.starts_with(std::string(row.name) + "=");
        }
        if (!known) {
            unknown.push_back(variable.substr(0, variable.find('=')));
        }
    }
    return values;
}

result<settings> read_settings(std::vector<std::string> &unknown) {
    return read_settings(unknown, [](const char *name) { return std::getenv(name); });
}

} // namespace diomp
