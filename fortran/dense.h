// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous copies of sections, for calls that want their data in one piece.
#pragma once

#include "array.h"

namespace diomp::fortran {

/// The elements of an array in one piece: where they are, if they lie so, else in a copy that is
/// freed with this.
class dense {
public:
    dense() = default;
    ~dense();
    dense(const dense &) = delete;
    dense &operator=(const dense &) = delete;

    /// Once. Copies the elements of a section. OMPX_ERR_NOMEM, and nothing else.
    [[nodiscard]] int take(const call_site &site, const array &given);
    [[nodiscard]] void *data() const { return data_; }
    /// Writes the copy's elements back into the section.
    void give_back(const array &given) const;

private:
    void *data_ = nullptr;
    void *copy_ = nullptr;
};

} // namespace diomp::fortran
