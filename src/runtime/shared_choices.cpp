// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/shared_choices.h"

#include "base/log.h"
#include "coll/tuning.h"
#include "launch/launch.h"
#include "launch/long_value.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::runtime {
namespace {

constexpr std::string_view choices_key = "choices";
/// The value begins with one of these. The remedy of an error follows in a line of its own;
/// otherwise the settings end the first line, and the rules follow.
constexpr char has_rules = 'r';
constexpr char has_failed = 'e';
constexpr char has_rules_and_devices = 'd';

constexpr char separator = '\t';

std::string text_of(const own_choices::setting &of) {
    std::string text = fmt::format("{}={}", of.name, of.value);
    std::ranges::replace_if(text, [](char c) { return c == separator || c == '\n'; }, ' ');
    return text;
}

std::string describe(const own_choices &own) {
    char const first = own.has_remote_devices ? has_rules_and_devices : has_rules;
    std::string head{first};
    for (own_choices::setting const &each : own.equal_settings) {
        head += text_of(each) + separator;
    }
    head += '\n';
    std::string const &file = own.tuning_file;
    if (file.empty()) {
        return head;
    }
    auto const rules = coll::tuning_rules::read(file);
    if (!rules) {
        return fmt::format("{}{}\n{}", has_failed, rules.failure().message(),
                           rules.failure().remedy());
    }
    return head + rules.value().to_text();
}

/// `of_rank_0`: as in describe().
status compare(const std::vector<own_choices::setting> &own, std::string_view of_rank_0) {
    for (own_choices::setting const &each : own) {
        std::string_view const theirs = of_rank_0.substr(0, of_rank_0.find(separator));
        if (text_of(each) != theirs) {
            return error(OMPX_ERR_ARG,
                         fmt::format("this rank has {}, rank 0 has {}", text_of(each), theirs),
                         fmt::format("set {} alike on all ranks", each.name));
        }
        of_rank_0.remove_prefix(theirs.size() + 1);
    }
    return {};
}

} // namespace

status publish_choices(launch::launcher &launcher, const own_choices &own) {
    launch::job_info const &job = launcher.info();
    return job.rank == world_rank{0} && job.size > 1
               ? launch::publish_long_value(launcher, choices_key, describe(own))
               : status{};
}

result<shared_choices> fetch_choices(launch::launcher &launcher, const own_choices &own) {
    std::string const &file = own.tuning_file;
    auto fetched = launcher.info().size == 1 ? result<std::string>(describe(own))
                                             : launch::fetch_long_value(launcher, choices_key);
    DIOMP_TRY(fetched);
    std::string_view const text = fetched.value();
    if (text.starts_with(has_failed)) {
        std::size_t const end = text.find('\n');
        return error(OMPX_ERR_ARG, std::string(text.substr(1, end - 1)),
                     std::string(text.substr(end + 1)));
    }
    std::size_t const head_end = text.find('\n');
    DIOMP_TRY(compare(own.equal_settings, text.substr(1, head_end - 1)));
    auto rules = coll::tuning_rules::parse(text.substr(head_end + 1), "the rules of rank 0");
    DIOMP_TRY(rules);
    std::size_t const num_rules = rules.value().rules().size();
    bool const is_rank_0 = launcher.info().rank == world_rank{0};
    if (!file.empty() && is_rank_0) {
        log(log_level::info, "{} rules for collectives from {}", num_rules, file);
    } else if (!file.empty() && num_rules == 0) {
        log(log_level::warn,
            "DIOMP_COLL_TUNING={} does not matter here: rank 0, which reads the file for all "
            "ranks, has no rules",
            file);
    }
    shared_choices found;
    found.have_remote_devices = text.front() == has_rules_and_devices;
    if (num_rules > 0) {
        found.algorithms = std::make_shared<const coll::tuning_rules>(rules.take());
    }
    return found;
}

} // namespace diomp::runtime
