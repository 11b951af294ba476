// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "groups.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <utility>
#include <vector>

namespace diomp::python {

namespace {

/// A group, or None for a rank that is not a member.
std::optional<group> member(ompx_group_t handle) {
    return handle == OMPX_GROUP_NONE ? std::nullopt : std::optional<group>{{handle}};
}

group create(const std::vector<int> &ranks) {
    group made{OMPX_GROUP_NONE};
    run([&] {
        return ompx_group_create(&made.handle, ranks.data(), static_cast<int>(ranks.size()));
    });
    return made;
}

group create_endpoints(const std::vector<std::pair<int, int>> &endpoints) {
    std::vector<ompx_endpoint_t> all;
    all.reserve(endpoints.size());
    for (auto const &[rank, device] : endpoints) {
        all.push_back({rank, device});
    }
    group made{OMPX_GROUP_NONE};
    run([&] {
        return ompx_group_create_endpoints(&made.handle, all.data(), static_cast<int>(all.size()));
    });
    return made;
}

std::optional<group> split(const group &self, int color, int key) {
    ompx_group_t result = OMPX_GROUP_NONE;
    run([&] { return ompx_group_split(self.handle, color, key, &result); });
    return member(result);
}

group duplicate(const group &self) {
    group made{OMPX_GROUP_NONE};
    run([&] { return ompx_group_dup(self.handle, &made.handle); });
    return made;
}

std::optional<group> merge(const group *a, const group *b) {
    auto const handle = [](const group *given) {
        return given != nullptr ? given->handle : OMPX_GROUP_NONE;
    };
    ompx_group_t result = OMPX_GROUP_NONE;
    run([&] { return ompx_group_merge(handle(a), handle(b), &result); });
    return member(result);
}

std::vector<std::optional<int>> translate(const group &self, const std::vector<int> &members,
                                          const group &to) {
    std::vector<int> numbers(members.size());
    check(ompx_group_translate(self.handle, members.data(), static_cast<int>(members.size()),
                               to.handle, numbers.data()));
    std::vector<std::optional<int>> results;
    results.reserve(numbers.size());
    for (int const number : numbers) {
        results.push_back(number == OMPX_NO_MEMBER ? std::nullopt : std::optional<int>(number));
    }
    return results;
}

std::pair<int, int> endpoint(const group &self, int number) {
    ompx_endpoint_t found{};
    check(ompx_group_endpoint(self.handle, number, &found));
    return {found.rank, found.device};
}

} // namespace

void bind_groups(nb::module_ &m) {
    nb::class_<group>(m, "Group",
                      "An ordered set of ranks or endpoints. Groups are freed by free(), which is "
                      "collective, or at the end; the garbage collector frees none.")
        .def_static("create", create, nb::arg("ranks"),
                    "A group of world ranks. Collective over these ranks.")
        .def_static("create_endpoints", create_endpoints, nb::arg("endpoints"),
                    "A group of (rank, device) pairs. Collective over these ranks.")
        .def_static(
            "merge", merge, nb::arg("a").none(), nb::arg("b").none(),
            "The members of a, then those of b that are not in a. A rank that is not in one "
            "of them passes None for it. Collective over the union.")
        .def_prop_ro(
            "size", [](const group &self) { return check(ompx_group_size(self.handle)); },
            "Number of members.")
        .def_prop_ro(
            "rank", [](const group &self) { return check(ompx_group_rank(self.handle)); },
            "This rank's number in the group.")
        .def(
            "world_rank",
            [](const group &self, int number) {
                return check(ompx_group_world_rank(self.handle, number));
            },
            nb::arg("member"), "World rank of a member.")
        .def("endpoint", endpoint, nb::arg("member"),
             "Rank and device of a member of a group of endpoints.")
        .def(
            "split", split, nb::arg("color"), nb::arg("key") = 0,
            "Members with equal color form a new group, ordered by key; None for a negative color. "
            "Collective.")
        .def("dup", duplicate, "A group of the same members. Collective.")
        .def("translate", translate, nb::arg("members"), nb::arg("to"),
             "Numbers in the group `to` of members of this one; None for a rank that is not in it.")
        .def(
            "free", [](group &self) { run([&] { return ompx_group_free(&self.handle); }); },
            "Frees the group. Collective.");
    m.attr("WORLD") = nb::cast(group{ompx_group_world});
}

} // namespace diomp::python
