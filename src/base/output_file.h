// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that is written once, sequentially. On a full disk the system may fail at any write, even
// at close.
#pragma once

#include "base/result.h"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace diomp {

/// One thread.
class output_file {
public:
    /// `what` names the content in messages: "the trace".
    static result<output_file> create(const std::string &what, const std::string &path) {
        return open(what, path, "we");
    }
    /// Appends to the file.
    static result<output_file> append(const std::string &what, const std::string &path) {
        return open(what, path, "ae");
    }

    /// Errors are reported by close(), which returns the first one.
    void write(std::string_view text);
    /// Closes the file. An error, with the path and the system's reason, unless all data was
    /// written.
    status close();

private:
    static result<output_file> open(const std::string &what, const std::string &path,
                                    const char *mode);
    struct closer {
        void operator()(std::FILE *file) const { std::fclose(file); }
    };
    output_file(std::string what, std::string path, std::FILE *file)
        : what_(std::move(what)), path_(std::move(path)), file_(file) {}

    std::string what_;
    std::string path_;
    std::unique_ptr<std::FILE, closer> file_;
    int failure_ = 0; ///< errno of the first failure
};

} // namespace diomp
