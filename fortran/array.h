// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a Fortran compiler tells about an argument (type(*), dimension(..)): its descriptor
// (Fortran 2018, 18.5). Of the compiler that has built the module, since layouts differ.
#pragma once

#include <ISO_Fortran_binding.h>
#include <cstddef>
#include <diomp.h>

namespace diomp::fortran {

/// Elements of one argument that is there.
class array {
public:
    explicit array(const CFI_cdesc_t *descriptor) : told_(descriptor) {}

    [[nodiscard]] void *data() const { return told_->base_addr; }
    [[nodiscard]] std::size_t element_bytes() const { return told_->elem_len; }
    [[nodiscard]] int rank() const { return told_->rank; }
    [[nodiscard]] const CFI_dim_t &dim(int i) const { return told_->dim[i]; }
    /// An assumed-size dummy does not tell where it ends.
    [[nodiscard]] bool has_end() const;
    [[nodiscard]] bool is_contiguous() const;
    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t nbytes() const { return count() * element_bytes(); }
    /// 0: none that collectives and atomics know.
    [[nodiscard]] ompx_type_t type() const;

private:
    const CFI_cdesc_t *told_;
};

/// A call, for messages: its text is made when there is something to tell.
class call_site {
public:
    static constexpr int no_rank = -1;
    call_site(const char *function, const array &dst, const array &src, int rank = no_rank)
        : function_(function), dst_(dst), src_(src), rank_(rank) {}
    int fail(int status, const char *what, const char *remedy) const;

private:
    const char *function_;
    array dst_;
    array src_;
    int rank_;
};

/// That the argument ends somewhere, and lies in one piece.
int check_contiguous(const call_site &site, const array &given, const char *name);
int check_end(const call_site &site, const array &given, const char *name);

} // namespace diomp::fortran
