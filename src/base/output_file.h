// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that is written once, from its beginning to its end. On a full disk the system may refuse
// at any write, and as late as at close.
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
    /// `what` is what is written, for messages: "the trace".
    static result<output_file> create(const std::string &what, const std::string &path) {
        return open(what, path, "we");
    }
    /// Goes on at the end of the file.
    static result<output_file> append(const std::string &what, const std::string &path) {
        return open(what, path, "ae");
    }

    /// The first failure is kept for close().
    void write(std::string_view text);
    /// An error, with the path and the system's reason, unless the system has taken all of it.
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
