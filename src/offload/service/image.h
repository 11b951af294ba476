// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device images of a session, loaded as libraries.
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

/// Bytes of each variable of an image that can be written, by its name. None of what is no ELF
/// file.
std::map<std::string, std::uint64_t> variables_in(std::string_view image);

/// Any thread.
class image_set {
public:
    /// Runs the image's constructors. The name of the file must not come again for another one
    /// until unload(): the loader knows libraries by their names. What is loaded again, by another
    /// library of the program that has the same image, has variables of its own.
    /// OMPX_ERR_UNSUPPORTED: the system's loader refuses it.
    result<std::vector<remote::place>> load(const std::string &file, const remote::image_id &id,
                                            const std::vector<remote::symbol> &symbols);
    /// Whether the range lies in data of a loaded image.
    [[nodiscard]] bool has(std::uint64_t address, std::size_t nbytes) const;
    /// The name of a function that load() told the address of; nullptr if it did not.
    [[nodiscard]] const std::string *name_of(std::uint64_t function) const;
    /// Runs the destructors.
    void unload();

private:
    struct range {
        std::uint64_t begin;
        std::uint64_t end;
        bool is_written;
        [[nodiscard]] bool has(std::uint64_t address, std::size_t nbytes) const {
            return address >= begin && address <= end && nbytes <= end - address;
        }
    };
    result<void *> open(const std::string &file, const remote::image_id &id); ///< with mutex_
    result<std::string> copy(const std::string &file);                        ///< with mutex_
    void note_data(void *handle);
    [[nodiscard]] bool is_variable(std::uint64_t address,
                                   std::size_t nbytes) const; ///< with mutex_

    mutable std::mutex mutex_;
    std::set<remote::image_id> known_;
    std::vector<void *> handles_;   ///< in the order of loading
    std::vector<unique_fd> copies_; ///< of what has been loaded again
    std::vector<range> data_;
    std::map<std::uint64_t, std::string> names_;
};

} // namespace diomp::offload::service
