// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PMI-1: MPICH's hydra and most others.
#include "launch/pmi/server.h"

#include <fmt/format.h>

namespace diomp::launch::pmi {
namespace {

class pmi1_server final : public pmi_server {
public:
    explicit pmi1_server(pmi_connection &wire) : wire_(wire) {}

    status start(int /*rank*/, const std::string & /*job*/) override {
        auto init_reply = query({{"cmd", "init"}, {"pmi_version", "1"}, {"pmi_subversion", "1"}},
                                "response_to_init");
        DIOMP_TRY(init_reply);
        auto name = query({{"cmd", "get_my_kvsname"}}, "my_kvsname");
        DIOMP_TRY(name);
        const std::string *const kvs_name = find_field(name.value(), "kvsname");
        if (kvs_name == nullptr) {
            return error(OMPX_ERR_SYSTEM, "the PMI launcher has no key-value space");
        }
        kvs_name_ = *kvs_name;
        return {};
    }

    result<std::optional<std::string>> process_mapping() override {
        return get("PMI_process_mapping");
    }

    status put(const std::string &key, const std::string &value) override {
        auto done = query({{"cmd", "put"}, {"kvsname", kvs_name_}, {"key", key}, {"value", value}},
                          "put_result");
        DIOMP_TRY(done);
        return {};
    }

    result<std::optional<std::string>> get(const std::string &key) override {
        auto reply =
            wire_.query_line({{"cmd", "get"}, {"kvsname", kvs_name_}, {"key", key}}, "get_result");
        DIOMP_TRY(reply);
        const std::string *const code = find_field(reply.value(), "rc");
        const std::string *const value = find_field(reply.value(), "value");
        if ((code != nullptr && *code != "0") || value == nullptr) {
            return std::optional<std::string>();
        }
        return std::optional(*value);
    }

    status fence() override {
        auto barrier_reply = query({{"cmd", "barrier_in"}}, "barrier_out");
        DIOMP_TRY(barrier_reply);
        return {};
    }

    status finalize() override {
        auto finalize_reply = query({{"cmd", "finalize"}}, "finalize_ack");
        DIOMP_TRY(finalize_reply);
        return {};
    }

    void abort(int code, const std::string & /*message*/) noexcept override {
        [[maybe_unused]] auto const sent =
            wire_.send(write_line({{"cmd", "abort"}, {"exitcode", std::to_string(code)}}) + '\n');
    }

private:
    /// A reply that reports a failure is an error.
    result<fields> query(const fields &request, std::string_view expected) {
        auto reply = wire_.query_line(request, expected);
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

    pmi_connection &wire_;
    std::string kvs_name_;
};

} // namespace

std::unique_ptr<pmi_server> make_pmi1(pmi_connection &wire) {
    return std::make_unique<pmi1_server>(wire);
}

} // namespace diomp::launch::pmi
