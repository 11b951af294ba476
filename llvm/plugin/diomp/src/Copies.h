//===-- Copies.h - Results of omp_target_memcpy -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DIOMP_PLUGIN_COPIES_H
#define DIOMP_PLUGIN_COPIES_H

namespace diomp {

/// A wait of this thread for a device has failed.
void noteFailedWait();

} // namespace diomp

#endif // DIOMP_PLUGIN_COPIES_H
