// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One object per thread, on the heap: static storage of threads is limited for libraries that are
// loaded by dlopen.
//
// exit() destroys the variables of the calling thread before exit handlers and destructors of
// static objects run, which may still use the library. A thread that calls get() after that gets a
// new object, which lives until the process ends.
#pragma once

namespace diomp {

/// `Tag` distinguishes objects of the same type.
template <typename T, typename Tag = T>
class per_thread {
public:
    /// The calling thread's object, made by the first call.
    static T &get() {
        if (t_object == nullptr) [[unlikely]] {
            make();
        }
        return *t_object;
    }

private:
    struct owner {
        owner() = default;
        ~owner() {
            delete t_object;
            t_object = nullptr;
            t_is_over = true;
        }
        owner(const owner &) = delete;
        owner &operator=(const owner &) = delete;
    };

    [[gnu::noinline]] static void make() {
        t_object = new T();
        if (!t_is_over) {
            [[maybe_unused]] thread_local owner const destroyed_with_thread{};
        }
    }

    constinit inline static thread_local T *t_object = nullptr;
    constinit inline static thread_local bool t_is_over = false;
};

} // namespace diomp
