// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device images of a session, loaded as shared libraries.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "offload/remote/protocol.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::service {

/// Map from name to size of the writable variables of an image; empty if it is not an ELF file.
std::map<std::string, std::uint64_t> variables_in(std::string_view image);

/// Any thread.
class image_set {
public:
    /// Loads an image and runs its constructors. The file name must not be reused for another file
    /// until unload(), since the loader identifies libraries by their names. An image that is
    /// loaded again, for another library of the program with the same image, gets separate
    /// variables. Errors: OMPX_ERR_UNSUPPORTED: the system's loader rejects it.
    result<std::vector<remote::location>> load(const std::string &file, const remote::image_id &id,
                                               const std::vector<remote::symbol> &symbols);
    /// Whether the range lies in data of a loaded image.
    [[nodiscard]] bool has(std::uint64_t address, std::size_t nbytes) const;
    /// The name of a function whose address load() has returned; nullptr otherwise.
    [[nodiscard]] const std::string *name_of(std::uint64_t function) const;
    /// Runs the destructors.
    void unload();

private:
    struct range {
        std::uint64_t begin;
        std::uint64_t end;
        bool is_writable;
        [[nodiscard]] bool has(std::uint64_t address, std::size_t nbytes) const {
            return address >= begin && address <= end && nbytes <= end - address;
        }
    };
    result<void *> open(const std::string &file,
                        const remote::image_id &id);   ///< called with mutex_ held
    result<std::string> copy(const std::string &file); ///< called with mutex_ held
    void note_data(void *handle);
    [[nodiscard]] bool is_variable(std::uint64_t address,
                                   std::size_t nbytes) const; ///< called with mutex_ held

    mutable std::mutex mutex_;
    std::set<remote::image_id> loaded_;
    std::vector<void *> handles_;   ///< in the order of loading
    std::vector<unique_fd> copies_; ///< of images that were loaded again
    std::vector<range> data_;
    std::map<std::uint64_t, std::string> names_;
};

} // namespace diomp::offload::service
