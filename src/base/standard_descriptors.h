// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace diomp {

/// Descriptors 0 to 2 that are closed become /dev/null. Otherwise a connection gets the number, and
/// what the program prints goes there.
void fill_standard_descriptors();

} // namespace diomp
