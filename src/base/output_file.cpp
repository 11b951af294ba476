// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/output_file.h"

#include <fmt/format.h>

#include <cerrno>

namespace diomp {

result<output_file> output_file::open(const std::string &what, const std::string &path,
                                      const char *mode) {
    std::FILE *const file = std::fopen(path.c_str(), mode);
    if (file == nullptr) {
        return system_error(fmt::format("cannot write {} to '{}'", what, path), errno);
    }
    return output_file(what, path, file);
}

void output_file::write(std::string_view text) {
    if (failure_ == 0 && std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) {
        failure_ = errno;
    }
}

status output_file::close() {
    if (std::fflush(file_.get()) != 0 && failure_ == 0) {
        failure_ = errno;
    }
    if (std::fclose(file_.release()) != 0 && failure_ == 0) {
        failure_ = errno;
    }
    if (failure_ != 0) {
        return system_error(fmt::format("cannot write {} to '{}'", what_, path_), failure_);
    }
    return {};
}

} // namespace diomp
