// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace diomp {

/// Opens /dev/null for each closed descriptor from 0 to 2. Otherwise a connection could get such a
/// number and receive the program's output.
void fill_standard_descriptors();

} // namespace diomp
