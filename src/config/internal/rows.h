// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of the table of settings, one function per module that reads them.
#pragma once

#include "config/internal/kinds.h"
#include "config/settings.h"

#include <span>
#include <string>

namespace diomp::config {

/// Parses and shows the member of settings that `Field`, a generic lambda without captures,
/// selects. `Kind` is one of kinds.h.
template <typename Kind, typename Field>
constexpr setting_value value(Field) {
    return {
        [](settings &into, const std::string &text) { return Kind::parse(Field{}(into), text); },
        [](const settings &from) { return Kind::show(Field{}(from)); }};
}

std::span<const setting_row> memory_rows();
std::span<const setting_row> transport_rows();
std::span<const setting_row> messaging_rows();
std::span<const setting_row> rma_rows();
std::span<const setting_row> coll_rows();
std::span<const setting_row> runtime_rows();
std::span<const setting_row> device_rows();
std::span<const setting_row> offload_rows();
std::span<const setting_row> device_coll_rows();
std::span<const setting_row> remote_rows();

} // namespace diomp::config
