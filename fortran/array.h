// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The descriptor of a Fortran argument of type(*), dimension(..) (Fortran 2018, 18.5). Descriptor
// layouts differ, so it must come from the compiler that has built the module.
#pragma once

#include <ISO_Fortran_binding.h>
#include <cstddef>
#include <diomp.h>

namespace diomp::fortran {

/// The elements of one present argument.
class array {
public:
    explicit array(const CFI_cdesc_t *descriptor) : descriptor_(descriptor) {}

    [[nodiscard]] void *data() const { return descriptor_->base_addr; }
    [[nodiscard]] std::size_t element_bytes() const { return descriptor_->elem_len; }
    [[nodiscard]] int rank() const { return descriptor_->rank; }
    [[nodiscard]] const CFI_dim_t &dim(int i) const { return descriptor_->dim[i]; }
    /// Whether the last extent is known; it is not for an assumed-size dummy argument.
    [[nodiscard]] bool has_end() const;
    [[nodiscard]] bool is_contiguous() const;
    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t nbytes() const { return count() * element_bytes(); }
    /// Whether it is a type(c_ptr), an address without a shape.
    [[nodiscard]] bool is_address() const { return descriptor_->type == CFI_type_cptr; }
    /// 0: a type that collectives and atomics do not support.
    [[nodiscard]] ompx_type_t type() const;

private:
    const CFI_cdesc_t *descriptor_;
};

/// A call, for messages; the text is made only on an error.
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

/// Reports an error if both have types that collectives support, but not the same one. Arrays of
/// bytes may hold any data.
int check_types(const call_site &site, const array &dst, const array &src);
/// Check that the argument is contiguous (implies check_end()) and that its end is known. Report an
/// error of `site` otherwise and return its status.
int check_contiguous(const call_site &site, const array &given, const char *name);
int check_end(const call_site &site, const array &given, const char *name);

} // namespace diomp::fortran
