// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packets of control protocols: one type byte and its fields, one after the other, in host byte
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace diomp {

/// Builds one packet. The type is an enumeration of one byte.
class packet_writer {
public:
    /// A packet without a type.
    packet_writer() = default;
    template <typename Type>
    explicit packet_writer(Type type) {
        static_assert(sizeof(Type) == 1);
        number(static_cast<std::uint8_t>(type));
    }

    template <typename T>
    void number(T value) {
        static_assert(std::is_unsigned_v<T>);
        bytes_.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    void text(std::string_view value) {
        number(static_cast<std::uint32_t>(value.size()));
        bytes_.append(value);
    }
    /// Appends bytes without their length; they extend to the end of the packet.
    void bytes(std::string_view value) { bytes_.append(value); }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

/// Parses one packet. Reading past its end yields zeros and clears ok().
class packet_reader {
public:
    explicit packet_reader(std::string_view bytes) : rest_(bytes) {}

    template <typename Type>
    [[nodiscard]] Type type() {
        return static_cast<Type>(number<std::uint8_t>());
    }
    template <typename T>
    T number() {
        static_assert(std::is_unsigned_v<T>);
        T value = 0;
        if (ok_ = ok_ && rest_.size() >= sizeof value; ok_) {
            rest_.copy(reinterpret_cast<char *>(&value), sizeof value);
            rest_.remove_prefix(sizeof value);
        }
        return value;
    }
    std::string_view text() {
        auto const size = number<std::uint32_t>();
        if (ok_ = ok_ && rest_.size() >= size; !ok_) {
            return {};
        }
        std::string_view const value = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return value;
    }
    [[nodiscard]] std::size_t rest_size() const { return rest_.size(); }
    /// All remaining bytes.
    [[nodiscard]] std::string_view rest() { return std::exchange(rest_, {}); }
    [[nodiscard]] bool at_end() const { return rest_.empty(); }
    [[nodiscard]] bool ok() const { return ok_; }

private:
    std::string_view rest_;
    bool ok_ = true;
};

} // namespace diomp
