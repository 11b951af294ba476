// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PMI-1: MPICH's hydra and most others.
#include "launch/pmi/server.h"

#include <fmt/format.h>

namespace diomp::launch::pmi {
namespace {

class pmi1_server final : public server {
public:
    explicit pmi1_server(connection &wire) : wire_(wire) {}

    status start(int /*rank*/, const std::string & /*job*/) override {
        auto greeted = ask({{"cmd", "init"}, {"pmi_version", "1"}, {"pmi_subversion", "1"}},
                           "response_to_init");
        DIOMP_TRY(greeted);
        auto name = ask({{"cmd", "get_my_kvsname"}}, "my_kvsname");
        DIOMP_TRY(name);
        const std::string *const space = find_field(name.value(), "kvsname");
        if (space == nullptr) {
            return error(OMPX_ERR_SYSTEM, "the PMI launcher has no key-value space");
        }
        space_ = *space;
        return {};
    }

    result<std::optional<std::string>> process_mapping() override {
        return get("PMI_process_mapping");
    }

    status put(const std::string &key, const std::string &value) override {
        auto done = ask({{"cmd", "put"}, {"kvsname", space_}, {"key", key}, {"value", value}},
                        "put_result");
        DIOMP_TRY(done);
        return {};
    }

    result<std::optional<std::string>> get(const std::string &key) override {
        auto reply =
            wire_.ask_line({{"cmd", "get"}, {"kvsname", space_}, {"key", key}}, "get_result");
        DIOMP_TRY(reply);
        const std::string *const code = find_field(reply.value(), "rc");
        const std::string *const value = find_field(reply.value(), "value");
        if ((code != nullptr && *code != "0") || value == nullptr) {
            return std::optional<std::string>();
        }
        return std::optional(*value);
    }

    status fence() override {
        auto met = ask({{"cmd", "barrier_in"}}, "barrier_out");
        DIOMP_TRY(met);
        return {};
    }

    status finalize() override {
        auto left = ask({{"cmd", "finalize"}}, "finalize_ack");
        DIOMP_TRY(left);
        return {};
    }

    void abort(int code, const std::string & /*message*/) noexcept override {
        [[maybe_unused]] auto const sent =
            wire_.send(write_line({{"cmd", "abort"}, {"exitcode", std::to_string(code)}}) + '\n');
    }

private:
    /// A reply other than of success is an error.
    result<fields> ask(const fields &request, std::string_view expected) {
        auto reply = wire_.ask_line(request, expected);
        if (!reply) {
            return reply;
        }
        const std::string *const code = find_field(reply.value(), "rc");
        if (code != nullptr && *code != "0") {
            const std::string *const why = find_field(reply.value(), "msg");
            return error(OMPX_ERR_SYSTEM,
                         fmt::format("the PMI launcher refused '{}': {}", request.front().second,
                                     why != nullptr ? *why : "rc=" + *code));
        }
        return reply;
    }

    connection &wire_;
    std::string space_;
};

} // namespace

std::unique_ptr<server> make_pmi1(connection &wire) { return std::make_unique<pmi1_server>(wire); }

} // namespace diomp::launch::pmi
