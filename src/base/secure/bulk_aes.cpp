// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/bulk_aes.h"

#include "base/panic.h"
#include "base/shared_library.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace diomp::secure {
namespace {

// From openssl/evp.h and openssl/crypto.h, whose interface is stable within version 3.
constexpr int get_tag = 0x10;
constexpr int set_tag = 0x11;
constexpr std::uint64_t no_atexit = 0x00080000;
/// OpenSSL's lengths are of type int.
constexpr std::size_t max_update_bytes = std::size_t{1} << 30;

struct libcrypto_functions {
    int (*start)(std::uint64_t options, const void *settings) = nullptr;
    void *(*create)() = nullptr;
    void (*destroy)(void *context) = nullptr;
    const void *(*aes_256_gcm)() = nullptr;
    int (*init)(void *context, const void *cipher, void *engine, const unsigned char *key,
                const unsigned char *nonce, int encrypts) = nullptr;
    int (*update)(void *context, unsigned char *into, int *num_written, const unsigned char *from,
                  int nbytes) = nullptr;
    int (*finish)(void *context, unsigned char *into, int *num_written) = nullptr;
    int (*control)(void *context, int what, int number, void *pointer) = nullptr;
};

/// Null if the library is missing.
const libcrypto_functions *load() {
    static constexpr std::array names{"libcrypto.so.3"};
    auto opened = shared_library::open("", names, "OpenSSL", "");
    if (!opened) {
        return nullptr;
    }
    static libcrypto_functions table;
    shared_library library = opened.take();
    library.find(table.start, "OPENSSL_init_crypto");
    library.find(table.create, "EVP_CIPHER_CTX_new");
    library.find(table.destroy, "EVP_CIPHER_CTX_free");
    library.find(table.aes_256_gcm, "EVP_aes_256_gcm");
    library.find(table.init, "EVP_CipherInit_ex");
    library.find(table.update, "EVP_CipherUpdate");
    library.find(table.finish, "EVP_CipherFinal_ex");
    library.find(table.control, "EVP_CIPHER_CTX_ctrl");
    // Threads of the runtime may still use the library while the process ends.
    return library.check().ok() && table.start(no_atexit, nullptr) == 1 ? &table : nullptr;
}

const libcrypto_functions *library() {
    static const libcrypto_functions *const loaded = load();
    return loaded;
}

/// Null pointers are not allowed as input, not even with length 0.
bool update(void *context, unsigned char *into, std::span<const unsigned char> from) {
    while (!from.empty()) {
        auto const chunk = from.first(std::min(from.size(), max_update_bytes));
        int num_written = 0;
        if (library()->update(context, into, &num_written, chunk.data(),
                              static_cast<int>(chunk.size())) != 1) {
            return false;
        }
        into = into == nullptr ? nullptr : into + chunk.size();
        from = from.subspan(chunk.size());
    }
    return true;
}

} // namespace

std::unique_ptr<bulk_aes> bulk_aes::create(const connection_key &key) {
    const libcrypto_functions *const calls = library();
    if (calls == nullptr) {
        return nullptr;
    }
    std::unique_ptr<bulk_aes> made(new bulk_aes(calls->create()));
    bool const works =
        made->context_ != nullptr &&
        calls->init(made->context_, calls->aes_256_gcm(), nullptr, key.data(), nullptr, 1) == 1;
    return works ? std::move(made) : nullptr;
}

bulk_aes::~bulk_aes() { library()->destroy(context_); } // erases the key

void bulk_aes::seal(nonce number, std::span<const unsigned char> header,
                    std::span<const unsigned char> text, unsigned char *into) {
    const libcrypto_functions &calls = *library();
    int none = 0;
    unsigned char *const tag = into + text.size();
    bool const works = calls.init(context_, nullptr, nullptr, nullptr, number.data(), 1) == 1 &&
                       update(context_, nullptr, header) && update(context_, into, text) &&
                       calls.finish(context_, tag, &none) == 1 &&
                       calls.control(context_, get_tag, tag_bytes, tag) == 1;
    if (!works) { // plaintext must never be sent
        panic("OpenSSL's AES-256-GCM has failed");
    }
}

bool bulk_aes::open(nonce number, std::span<const unsigned char> header,
                    std::span<const unsigned char> message, unsigned char *into) {
    const libcrypto_functions &calls = *library();
    auto const text = message.first(message.size() - tag_bytes);
    std::array<unsigned char, tag_bytes> tag{};
    std::memcpy(tag.data(), message.data() + text.size(), tag.size());
    std::array<unsigned char, tag_bytes> unused{};
    int none = 0;
    bool const is_genuine =
        calls.init(context_, nullptr, nullptr, nullptr, number.data(), 0) == 1 &&
        update(context_, nullptr, header) && update(context_, into, text) &&
        calls.control(context_, set_tag, tag_bytes, tag.data()) == 1 &&
        calls.finish(context_, unused.data(), &none) == 1;
    if (!is_genuine) {
        std::fill_n(into, text.size(), static_cast<unsigned char>(0));
    }
    return is_genuine;
}

} // namespace diomp::secure
