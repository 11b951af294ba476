// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/confinement.h"

#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <linux/landlock.h>
#include <sched.h>
#include <string_view>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef DIOMP_HAVE_SECCOMP
#include <linux/seccomp.h>
#include <seccomp.h>
#endif

namespace diomp::offload::service {
namespace {

// The kernel's headers of Debian 12 end at version 2 of the interface; the values are in
// landlock(7).
constexpr std::uint64_t right_refer = 1U << 13;
constexpr std::uint64_t right_truncate = 1U << 14;
constexpr std::uint64_t right_bind_tcp = 1U << 0;
constexpr std::uint64_t scope_abstract_unix_socket = 1U << 0;
constexpr std::uint64_t scope_signal = 1U << 1;
constexpr int rule_net_port = 2;

struct ruleset_attributes {
    std::uint64_t files = 0;
    std::uint64_t network = 0; ///< from version 4 on
    std::uint64_t scoped = 0;  ///< from version 6 on
};

struct net_port_rule {
    std::uint64_t allowed = 0;
    std::uint64_t port = 0;
};

constexpr std::uint64_t write_rights =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM;
/// Rights that a rule about a single file may name.
constexpr std::uint64_t file_rights = LANDLOCK_ACCESS_FS_WRITE_FILE | right_truncate;

/// 0: the kernel was built or started without Landlock.
int landlock_version() {
    long const version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? static_cast<int>(version) : 0;
}

class ruleset {
public:
    static result<ruleset> create(int version) {
        ruleset made;
        made.attributes_.files = write_rights;
        std::size_t size = sizeof made.attributes_.files;
        if (version >= 2) {
            made.attributes_.files |= right_refer;
        }
        if (version >= 3) {
            made.attributes_.files |= right_truncate;
        }
        if (version >= 4) {
            made.attributes_.network = right_bind_tcp;
            size += sizeof made.attributes_.network;
        }
        if (version >= 6) {
            made.attributes_.scoped = scope_abstract_unix_socket | scope_signal;
            size += sizeof made.attributes_.scoped;
        }
        made.fd_ = unique_fd(
            static_cast<int>(::syscall(SYS_landlock_create_ruleset, &made.attributes_, size, 0)));
        if (!made.fd_.valid()) {
            return system_error("landlock_create_ruleset", errno);
        }
        return made;
    }

    /// A path that does not exist or cannot be opened is left out: nothing is allowed there.
    status allow(const std::filesystem::path &path, std::uint64_t rights) {
        unique_fd const target(::open(path.c_str(), O_PATH | O_CLOEXEC));
        if (!target.valid()) {
            return {};
        }
        landlock_path_beneath_attr rule{};
        rule.allowed_access = rights & attributes_.files;
        rule.parent_fd = target.get();
        return add(LANDLOCK_RULE_PATH_BENEATH, &rule);
    }

    /// Ports of the system's choice, which nothing else expects a service at.
    status allow_any_free_port() {
        if (attributes_.network == 0) {
            return {};
        }
        net_port_rule const rule{right_bind_tcp, 0};
        return add(rule_net_port, &rule);
    }

    status restrict_this_thread() {
        if (::syscall(SYS_landlock_restrict_self, fd_.get(), 0) != 0) {
            return system_error("landlock_restrict_self", errno);
        }
        return {};
    }

private:
    status add(int kind, const void *rule) {
        if (::syscall(SYS_landlock_add_rule, fd_.get(), kind, rule, 0) != 0) {
            return system_error("landlock_add_rule", errno);
        }
        return {};
    }

    unique_fd fd_;
    ruleset_attributes attributes_;
};

/// Adapters, GPUs, terminals and /dev/null, one by one: /dev as a whole would include /dev/shm,
/// where memory of other processes lies, and disks.
status allow_device_files(ruleset &rules) {
    namespace fs = std::filesystem;
    std::error_code failure;
    for (fs::recursive_directory_iterator
             entry("/dev", fs::directory_options::skip_permission_denied, failure),
         end;
         !failure && entry != end; entry.increment(failure)) {
        std::error_code unreadable;
        if (entry->path() == "/dev/shm") {
            entry.disable_recursion_pending();
        } else if (entry->symlink_status(unreadable).type() == fs::file_type::character) {
            DIOMP_TRY(rules.allow(entry->path(), file_rights));
        }
    }
    return {};
}

status restrict_by_landlock(const std::string &folder) {
    int const version = landlock_version();
    if (version == 0) {
        return {};
    }
    auto rules = ruleset::create(version);
    DIOMP_TRY(rules);
    DIOMP_TRY(allow_device_files(rules.value()));
    if (!folder.empty()) {
        DIOMP_TRY(rules.value().allow(folder, write_rights | right_refer | right_truncate));
    }
    DIOMP_TRY(rules.value().allow_any_free_port());
    return rules.value().restrict_this_thread();
}

#ifdef DIOMP_HAVE_SECCOMP

/// Names that this processor or version of libseccomp does not know are left out.
constexpr std::array<const char *, 49> refused_calls{
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    // mounts and namespaces
    "mount", "umount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    // the kernel and its large interfaces
    "bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "userfaultfd", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
    "fanotify_init", "open_by_handle_at",
    // the machine
    "reboot", "swapon", "swapoff", "acct", "quotactl", "sethostname", "setdomainname",
    "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "iopl", "ioperm",
    // keys
    "keyctl", "add_key", "request_key"};

/// A filter of libseccomp; refused calls fail with EPERM.
class system_call_filter {
public:
    system_call_filter() : context_(seccomp_init(SCMP_ACT_ALLOW)) {}
    ~system_call_filter() { seccomp_release(context_); }
    system_call_filter(const system_call_filter &) = delete;
    system_call_filter &operator=(const system_call_filter &) = delete;

    status load() {
        if (context_ == nullptr) {
            return error(OMPX_ERR_SYSTEM, "seccomp_init: no memory");
        }
        for (char const *const name : refused_calls) {
            int const number = seccomp_syscall_resolve_name(name);
            if (number != __NR_SCMP_ERROR) {
                DIOMP_TRY(refuse(number));
            }
        }
        DIOMP_TRY(refuse_new_namespaces());
        // Families above netlink (16), packet sockets (17) among them, and the old ones between.
        int const socket_number = SCMP_SYS(socket);
        DIOMP_TRY(refuse(socket_number, argument(0, SCMP_CMP_GT, AF_NETLINK)));
        for (int family = AF_INET + 1; family < AF_NETLINK; ++family) {
            if (family != AF_INET6) {
                DIOMP_TRY(refuse(socket_number, argument(0, SCMP_CMP_EQ, family)));
            }
        }
        for (int const family : {AF_INET, AF_INET6}) {
            for (int const type : {SOCK_RAW, SOCK_PACKET}) { // the latter makes a packet socket
                DIOMP_TRY(refuse(socket_number, argument(0, SCMP_CMP_EQ, family),
                                 argument(1, SCMP_CMP_MASKED_EQ, 0xf, type)));
            }
        }
        // Typing into the terminal that the service was started from.
        for (scmp_datum_t const request : {scmp_datum_t{TIOCSTI}, scmp_datum_t{TIOCLINUX}}) {
            DIOMP_TRY(
                refuse(SCMP_SYS(ioctl), scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, 0xffffffff, request}));
        }
        return check("seccomp_load", seccomp_load(context_));
    }

private:
    /// clone() with a namespace's flag fails. A filter does not see the flags of clone3(), which
    /// are in memory: with ENOSYS the C library takes clone().
    status refuse_new_namespaces() {
        for (int const flag : {CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS,
                               CLONE_NEWPID, CLONE_NEWUSER, CLONE_NEWUTS}) {
            DIOMP_TRY(refuse(SCMP_SYS(clone), argument(0, SCMP_CMP_MASKED_EQ, flag, flag)));
        }
        return check("seccomp_rule_add", seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(ENOSYS),
                                                                SCMP_SYS(clone3), 0, nullptr));
    }

    static scmp_arg_cmp argument(unsigned index, scmp_compare how, int value, int second = 0) {
        return {index, how, static_cast<scmp_datum_t>(value), static_cast<scmp_datum_t>(second)};
    }

    template <typename... Comparisons>
    status refuse(int number, Comparisons... when) {
        std::array<scmp_arg_cmp, sizeof...(when)> const all{when...};
        return check("seccomp_rule_add",
                     seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(EPERM), number,
                                            static_cast<unsigned>(all.size()), all.data()));
    }

    static status check(const char *call, int code) {
        if (code != 0) {
            return system_error(call, -code);
        }
        return {};
    }

    scmp_filter_ctx context_;
};

status restrict_by_seccomp() { return system_call_filter().load(); }
bool has_seccomp() {
    std::uint32_t const action = SECCOMP_RET_ERRNO;
    return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

#else

status restrict_by_seccomp() { return {}; }

#endif

/// Folders that cannot be entered are opened first. Links are removed, not followed.
bool remove_folder(const std::string &path) {
    namespace fs = std::filesystem;
    std::error_code failure;
    fs::permissions(path, fs::perms::owner_all, failure);
    for (fs::recursive_directory_iterator entry(path, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        std::error_code ignored;
        if (entry->symlink_status(ignored).type() == fs::file_type::directory) {
            fs::permissions(entry->path(), fs::perms::owner_all, ignored);
        }
    }
    fs::remove_all(path, failure);
    return !fs::exists(path, failure);
}

/// Whether a call that failed with `code` was refused by a filter: kernels without it report ENOSYS
/// or EOPNOTSUPP.
bool is_refused(int code) { return code == EPERM || code == EACCES; }

} // namespace

std::vector<std::string> missing_for_confinement() {
    std::vector<std::string> missing;
    int const version = landlock_version();
    if (version == 0) {
        missing.emplace_back(
            is_refused(errno)
                ? "a filter of system calls that the service was started with refuses Landlock "
                  "(SystemCallFilter= of systemd): sessions may write wherever the service may"
                : "the kernel has no Landlock: sessions may write wherever the service may");
    } else if (version < 3) {
        missing.emplace_back("the kernel's Landlock (before Linux 6.2) does not restrict the "
                             "truncation of files");
    }
    if (version != 0 && version < 4) {
        missing.emplace_back(
            "the kernel's Landlock (before Linux 6.7) does not restrict TCP ports");
    }
    if (version != 0 && version < 6) {
        missing.emplace_back("the kernel's Landlock (before Linux 6.12) does not restrict signals "
                             "and abstract Unix sockets");
    }
#ifdef DIOMP_HAVE_SECCOMP
    // libseccomp also has another call for it, which such a filter of the service may allow.
    if (!has_seccomp() && !is_refused(errno)) {
        missing.emplace_back("the kernel has no seccomp filters");
    }
#else
    missing.emplace_back("diomp-deviced was built without libseccomp: no system call is refused");
#endif
    return missing;
}

namespace {

constexpr std::string_view folder_prefix = "diomp-session-";

std::string folder_of_temporary_files() {
    char const *const chosen = std::getenv("TMPDIR");
    return chosen != nullptr && *chosen != 0 ? chosen : "/tmp";
}

/// The lock of a folder, which one process has; not valid if another one has it, or if the folder
/// is gone or belongs to another user.
unique_fd lock_folder(const std::string &path) {
    unique_fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat about{};
    if (!folder.valid() || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 ||
        ::fstat(folder.get(), &about) != 0 || about.st_nlink == 0 || about.st_uid != ::geteuid()) {
        return {};
    }
    return folder;
}

/// In a process of its own, which the service reaps like a session's: a client may have made any
/// number of files. It must keep no connection and no port open meanwhile.
void remove_in_background(const std::string &path) {
    pid_t const child = ::fork();
    if (child == 0) {
        close_other_descriptors({});
    }
    if (child <= 0 && !remove_folder(path)) {
        log(log_level::warn, "the folder of a session cannot be removed: {}", path);
    }
    if (child == 0) {
        std::_Exit(0);
    }
}

} // namespace

result<session_folder> session_folder::create() {
    constexpr int max_tries = 10;
    std::string const pattern =
        fmt::format("{}/{}XXXXXX", folder_of_temporary_files(), folder_prefix);
    for (int i = 0; i < max_tries; ++i) {
        session_folder made;
        std::string path = pattern;
        if (::mkdtemp(path.data()) == nullptr) {
            return system_error("a folder for a session, " + path, errno);
        }
        made.lock_ = lock_folder(path);
        if (made.lock_.valid()) { // otherwise another service has taken it for an abandoned one
            made.path_ = std::move(path);
            made.creator_ = ::getpid();
            return made;
        }
    }
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("a folder for a session, {}: it cannot be locked", pattern));
}

void session_folder::remove_abandoned() {
    std::error_code failed;
    std::filesystem::directory_iterator all(folder_of_temporary_files(), failed);
    for (; !failed && all != std::filesystem::directory_iterator(); all.increment(failed)) {
        std::string const path = all->path().string();
        if (all->path().filename().string().starts_with(folder_prefix) &&
            lock_folder(path).valid()) {
            remove_in_background(path);
        }
    }
}

session_folder &session_folder::operator=(session_folder &&other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
        lock_ = std::move(other.lock_);
        creator_ = other.creator_;
    }
    return *this;
}

void session_folder::remove() {
    if (path_.empty() || creator_ != ::getpid()) {
        path_.clear();
        return;
    }
    remove_in_background(path_);
    path_.clear();
    lock_ = {};
}

void close_other_descriptors(std::span<int> kept) {
    std::ranges::sort(kept);
    auto first = static_cast<unsigned>(STDERR_FILENO + 1);
    for (int const each : kept) {
        auto const next = static_cast<unsigned>(each);
        if (next > first) {
            ::close_range(first, next - 1, 0);
        }
        first = std::max(first, next + 1);
    }
    ::close_range(first, std::numeric_limits<unsigned>::max(), 0);
}

status confine_this_process(const std::string &folder) {
    // Both need it: a program with the set-user-ID bit must not run under a filter of its caller's.
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return system_error("prctl(PR_SET_NO_NEW_PRIVS)", errno);
    }
    DIOMP_TRY(restrict_by_landlock(folder));
    return restrict_by_seccomp();
}

} // namespace diomp::offload::service
