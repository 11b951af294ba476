// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous copies of sections, for calls that need contiguous data.
#pragma once

#include "array.h"

namespace diomp::fortran {

/// The elements of an array as contiguous data: the array itself if it is contiguous, otherwise a
/// copy, which the destructor frees.
class contiguous_buffer {
public:
    contiguous_buffer() = default;
    ~contiguous_buffer();
    contiguous_buffer(const contiguous_buffer &) = delete;
    contiguous_buffer &operator=(const contiguous_buffer &) = delete;

    /// Copies the elements of a section. Call once. Errors: OMPX_ERR_NOMEM only.
    [[nodiscard]] int load(const call_site &site, const array &given);
    [[nodiscard]] void *data() const { return data_; }
    /// Copies the elements back into the section; no operation without a copy.
    void store_back(const array &given) const;

private:
    void *data_ = nullptr;
    void *copy_ = nullptr;
};

} // namespace diomp::fortran
