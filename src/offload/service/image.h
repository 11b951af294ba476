// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device images of a session: files that are known by their content, loaded as libraries.
#pragma once

#include "base/result.h"
#include "offload/remote/protocol.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::offload::service {

/// Images that any session of the service has been sent, as files in a folder of the service. One
/// that is there need not be sent again. Several processes may use it at the same time.
class image_cache {
public:
    explicit image_cache(std::string folder) : folder_(std::move(folder)) {}
    /// The file with this image, if it is known.
    [[nodiscard]] std::optional<std::string> find(const remote::image_id &id) const;
    /// Keeps an image, which must be what its id says. The file.
    result<std::string> add(const remote::image_id &id, std::string_view image) const;

private:
    [[nodiscard]] std::string path_of(const remote::image_id &id) const;
    std::string folder_;
};

/// Bytes of each variable of an image that can be written, by its name. None of what is no ELF
/// file.
std::map<std::string, std::uint64_t> variables_in(std::string_view image);

/// Any thread.
class image_set {
public:
    /// Runs the image's constructors. What is loaded again, by another library of the program that
    /// has the same image, has variables of its own. OMPX_ERR_UNSUPPORTED: the system's loader
    /// refuses it.
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
    void note_data(void *handle);
    [[nodiscard]] bool is_variable(std::uint64_t address,
                                   std::size_t nbytes) const; ///< with mutex_

    mutable std::mutex mutex_;
    std::set<remote::image_id> known_;
    std::vector<void *> handles_; ///< in the order of loading
    std::vector<range> data_;
    std::map<std::uint64_t, std::string> names_;
};

} // namespace diomp::offload::service
