// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Least rights for sessions: what code of a client's regions can no longer do on this host.
//
// Landlock (Linux 5.13, landlock(7)): files are created, written, renamed and removed in the
// session's own folder only, and device files that exist are written; processes outside the session
// cannot be traced and, from Linux 6.12 on, neither signalled nor reached by abstract Unix sockets;
// from Linux 6.7 on TCP ports are bound by the system's choice only. Reading is not restricted.
// seccomp (seccomp(2)), by libseccomp: system calls that serve to administer or to attack a host
// fail with EPERM, and so do sockets other than Unix, TCP, UDP and netlink ones.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace diomp::offload::service {

enum class confinement {
    off,
    available, ///< what the kernel and the build have; the service's log says what they lack
    required,  ///< the service does not start without all of it
};

/// What this kernel and this build lack for `confinement::required`, one sentence each; empty if
/// nothing. Does not block; any thread.
std::vector<std::string> missing_for_confinement();

/// A folder for the files of one session, in TMPDIR or /tmp. The process that has created it
/// removes it, with all that it holds, when the object ends; if it is killed, a later service does.
class session_folder {
public:
    /// Errors: OMPX_ERR_SYSTEM with the system's reason.
    static result<session_folder> create();
    /// Removes the folders of services that were killed.
    static void remove_abandoned();
    session_folder() = default;
    session_folder(session_folder &&other) noexcept
        : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)),
          creator_(other.creator_) {}
    session_folder &operator=(session_folder &&other) noexcept;
    ~session_folder() { remove(); }

    /// Empty if there is none.
    [[nodiscard]] const std::string &path() const { return path_; }

private:
    void remove();

    std::string path_;
    unique_fd lock_;    ///< of the folder itself, held until the service ends
    pid_t creator_ = 0; ///< sessions inherit a copy, and must not remove the folders of others
};

/// Closes all descriptors above 2 but `kept`, which is sorted: a session inherits those of the
/// service and of other clients, and close-on-exec does not apply to it.
void close_other_descriptors(std::span<int> kept);

/// Restricts the calling thread and all threads and processes that it starts from now on; there is
/// no way back. To be called before other threads exist. `folder`: the only folder in which files
/// may be made, or empty for none. What is missing is left out. Errors: OMPX_ERR_SYSTEM if the
/// kernel refuses what it has.
status confine_this_process(const std::string &folder);

} // namespace diomp::offload::service
