// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A callable passed down for the length of one call: two words, never allocates.
#pragma once

#include <type_traits>
#include <utility>

namespace diomp {

template <typename Signature>
class function_ref;

template <typename R, typename... Args>
class function_ref<R(Args...)> {
public:
    template <typename F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref>)
    function_ref(F &&callable)
        : object_(const_cast<void *>(static_cast<const void *>(&callable))),
          call_([](void *object, Args... args) -> R {
              return (*static_cast<std::remove_reference_t<F> *>(object))(
                  std::forward<Args>(args)...);
          }) {}

    R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

private:
    void *object_;
    R (*call_)(void *, Args...);
};

} // namespace diomp
