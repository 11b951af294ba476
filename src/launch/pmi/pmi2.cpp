// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PMI-2: `srun --mpi=pmi2`; hydra supports it too.
#include "launch/pmi/server.h"

#include <fmt/format.h>

namespace diomp::launch::pmi {
namespace {

class pmi2_server final : public pmi_server {
public:
    explicit pmi2_server(pmi_connection &wire) : wire_(wire) {}

    status start(int rank, const std::string &job) override {
        // The version is negotiated in a PMI-1 line.
        auto init_reply = wire_.query_line(
            {{"cmd", "init"}, {"pmi_version", "2"}, {"pmi_subversion", "0"}}, "response_to_init");
        DIOMP_TRY(init_reply);
        const std::string *const code = find_field(init_reply.value(), "rc");
        if (code == nullptr || *code != "0") {
            return error(OMPX_ERR_UNSUPPORTED, "the PMI launcher does not support PMI-2",
                         "set DIOMP_LAUNCH_PMI_VERSION=1");
        }
        // Slurm requires the job name, hydra has none.
        DIOMP_TRY(
            query("fullinit",
                  {{"pmijobid", job}, {"pmirank", std::to_string(rank)}, {"threaded", "FALSE"}}));
        auto named = query("job-getid", {{request_number, "1"}}, "#1");
        DIOMP_TRY(named);
        numbers_replies_ = find_field(named.value(), request_number) != nullptr;
        const std::string *const job_name = find_field(named.value(), "jobid");
        job_ = job_name != nullptr ? *job_name : job;
        return {};
    }

    result<std::optional<std::string>> process_mapping() override {
        return value_of(
            query("info-getjobattr", {{"key", "PMI_process_mapping"}, {"wait", "FALSE"}}));
    }

    status put(const std::string &key, const std::string &value) override {
        DIOMP_TRY(query("kvs-put", {{"key", key}, {"value", value}}));
        return {};
    }

    result<std::optional<std::string>> get(const std::string &key) override {
        return value_of(query("kvs-get", {{"jobid", job_}, {"srcid", "-1"}, {"key", key}}));
    }

    status fence() override {
        DIOMP_TRY(query("kvs-fence", {}));
        if (numbers_replies_) {
            // hydra replies at once, but to a request for a value that is not there when all ranks
            // are in the fence. Other threads get values meanwhile.
            DIOMP_TRY(query("kvs-get",
                            {{request_number, "1"},
                             {"jobid", job_},
                             {"srcid", "-1"},
                             {"key", "diomp-no-value"}},
                            "#1"));
        }
        return {};
    }

    status finalize() override {
        DIOMP_TRY(query("finalize", {}));
        return {};
    }

    // The protocol has no field for the code.
    void abort(int /*code*/, const std::string &message) noexcept override {
        [[maybe_unused]] auto const sent =
            wire_.send(write_message({{"cmd", "abort"}, {"isworld", "TRUE"}, {"msg", message}}));
    }

private:
    /// A reply that reports a failure is an error.
    /// `number`: "#" and the request_number, if it has one.
    result<fields> query(const std::string &command, const fields &arguments,
                         const char *number = "") {
        fields request{{"cmd", command}};
        request.insert(request.end(), arguments.begin(), arguments.end());
        auto reply = wire_.query_message(request, command + "-response" + number);
        if (!reply) {
            return reply;
        }
        const std::string *const code = find_field(reply.value(), "rc");
        if (code != nullptr && *code != "0") {
            const std::string *const why = find_field(reply.value(), "errmsg");
            return error(OMPX_ERR_SYSTEM, fmt::format("the PMI launcher refused '{}': {}", command,
                                                      why != nullptr ? *why : "rc=" + *code));
        }
        return reply;
    }

    static result<std::optional<std::string>> value_of(result<fields> reply) {
        DIOMP_TRY(reply);
        const std::string *const found = find_field(reply.value(), "found");
        const std::string *const value = find_field(reply.value(), "value");
        if (found == nullptr || *found != "TRUE" || value == nullptr) {
            return std::optional<std::string>();
        }
        return std::optional(*value);
    }

    pmi_connection &wire_;
    std::string job_;
    bool numbers_replies_ = false; ///< the server returns a request's number
};

} // namespace

std::unique_ptr<pmi_server> make_pmi2(pmi_connection &wire) {
    return std::make_unique<pmi2_server>(wire);
}

} // namespace diomp::launch::pmi
