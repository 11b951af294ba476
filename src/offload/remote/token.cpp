// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/token.h"

#include "base/unique_fd.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

bool is_set(const char *value) { return value != nullptr && *value != '\0'; }

/// `what` names the file in messages. Only the service can enter systemd's credentials directory,
/// where access control lists may show up as group permissions of the file.
result<secure::secret> read_file(const std::string &path, const std::string &what,
                                 bool is_private_folder) {
    unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat about{};
    if (!fd.valid() || ::fstat(fd.get(), &about) != 0) {
        return system_error(what, errno);
    }
    if ((about.st_mode & 077) != 0 && !is_private_folder) {
        return error(OMPX_ERR_ARG, fmt::format("{}: other users can read it", what),
                     fmt::format("chmod 600 {}", path));
    }
    char bytes[max_token_bytes + 2];
    ssize_t const got = ::read(fd.get(), bytes, sizeof bytes);
    std::string_view text(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
    while (text.ends_with('\n') || text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    bool const is_good = !text.empty() && text.size() <= max_token_bytes;
    auto made = is_good ? result<secure::secret>(secure::secret::from_text(text))
                        : error(OMPX_ERR_ARG, fmt::format("{}: a token must have 1 to {} bytes",
                                                          what, max_token_bytes));
    secure::erase({reinterpret_cast<unsigned char *>(bytes), sizeof bytes});
    return made;
}

} // namespace

result<secure::secret> read_token(const token_sources &from) {
    if (is_set(from.text)) {
        return secure::secret::from_text(from.text);
    }
    if (is_set(from.file)) {
        return read_file(from.file, fmt::format("DIOMP_TOKEN_FILE={}", from.file), false);
    }
    if (is_set(from.credentials)) {
        std::string const path = fmt::format("{}/{}", from.credentials, credential_name);
        if (::access(path.c_str(), F_OK) == 0) {
            return read_file(path, path, true);
        }
    }
    return error(OMPX_ERR_ARG, "there is no token for device services",
                 "set DIOMP_TOKEN, or DIOMP_TOKEN_FILE to a file that only you can read");
}

} // namespace diomp::offload::remote
