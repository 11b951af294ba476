// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/read_file.h"

#include "base/unique_fd.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace diomp {

result<std::string> read_file(const std::string &path, std::size_t max_bytes) {
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!file) {
        return system_error("cannot read " + path, errno);
    }
    std::string content;
    std::array<char, 16384> buffer; // NOLINT(*-member-init): filled by read
    while (true) {
        ssize_t const size = ::read(file.get(), buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return system_error("cannot read " + path, errno);
        }
        if (size == 0) {
            return content;
        }
        content.append(buffer.data(), static_cast<std::size_t>(size));
        if (content.size() > max_bytes) {
            return error(OMPX_ERR_SYSTEM, "cannot read " + path + ": longer than " +
                                              std::to_string(max_bytes) + " bytes");
        }
    }
}

} // namespace diomp
