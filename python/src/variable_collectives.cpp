// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives with a size for each member: counts and offsets are in elements.
#include "array.h"
#include "devices.h"
#include "events.h"
#include "groups.h"

#include <cstddef>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <vector>

namespace diomp::python {

namespace {

using sizes = std::vector<std::size_t>;

nb::handle layout_of(PyArrayObject *array) {
    return nb::handle(reinterpret_cast<PyObject *>(array));
}

/// The blocks of all members in one array, in bytes as C's functions take them.
class blocks {
public:
    blocks(const char *function, const group *members, const sizes &counts,
           const std::optional<sizes> &offsets);

    /// The array with all blocks, contiguous and large enough for them.
    [[nodiscard]] PyArrayObject *check_all(const char *name, nb::handle value, bool is_written);
    /// The array with the block of this member only.
    [[nodiscard]] PyArrayObject *check_own(const char *name, nb::handle value, bool is_written);
    /// Bytes for elements of `element_bytes`.
    [[nodiscard]] const std::size_t *nbytes(std::size_t element_bytes);
    [[nodiscard]] const std::size_t *offsets(std::size_t element_bytes);

    /// The device of the array that was checked last, or host_device.
    [[nodiscard]] int device() const { return device_; }
    /// What arrays were made of the arguments.
    [[nodiscard]] nb::object kept() const { return kept_; }

private:
    [[nodiscard]] PyArrayObject *check_array(const char *name, nb::handle value, bool is_written);
    [[nodiscard]] std::size_t end() const;
    static void scale(sizes &into, const sizes &from, std::size_t factor);

    const char *function_;
    std::size_t own_;
    sizes counts_;
    std::optional<sizes> offsets_;
    sizes count_bytes_;
    sizes offset_bytes_;
    nb::list kept_;
    int device_ = host_device;
};

blocks::blocks(const char *function, const group *members, const sizes &counts,
               const std::optional<sizes> &offsets)
    : function_(function),
      own_(static_cast<std::size_t>(check(ompx_group_rank(handle_of(members))))), counts_(counts),
      offsets_(offsets) {
    auto const size = static_cast<std::size_t>(check(ompx_group_size(handle_of(members))));
    if (counts_.size() != size || (offsets_ && offsets_->size() != size)) {
        fail(function, std::to_string(counts_.size()) + " counts", OMPX_ERR_ARG,
             "counts or offsets do not have one number for each member",
             "pass lists of " + std::to_string(size) + " numbers of elements");
    }
}

std::size_t blocks::end() const {
    std::size_t last = 0;
    std::size_t sum = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        std::size_t const begin = offsets_ ? (*offsets_)[i] : sum;
        last = std::max(last, counts_[i] == 0 ? 0 : begin + counts_[i]);
        sum += counts_[i];
    }
    return last;
}

PyArrayObject *blocks::check_array(const char *name, nb::handle value, bool is_written) {
    nb::object const layout = to_layout({function_, name}, value);
    kept_.append(layout);
    PyArrayObject *const array = is_written ? to_contiguous_writable({function_, name}, layout)
                                            : to_contiguous({function_, name}, layout);
    check_c_order({function_, name}, array);
    device_ = device_of(array);
    return array;
}

PyArrayObject *blocks::check_all(const char *name, nb::handle value, bool is_written) {
    PyArrayObject *const array = check_array(name, value, is_written);
    if (end() > count_of(array)) {
        fail({function_, name}, layout_of(array), OMPX_ERR_RANGE,
             "is too small for the blocks of all members",
             "allocate at least " + std::to_string(end()) + " elements");
    }
    return array;
}

PyArrayObject *blocks::check_own(const char *name, nb::handle value, bool is_written) {
    PyArrayObject *const array = check_array(name, value, is_written);
    if (count_of(array) != counts_[own_]) {
        fail({function_, name}, layout_of(array), OMPX_ERR_ARG,
             "does not have as many elements as this member's count",
             "pass " + std::to_string(counts_[own_]) + " elements");
    }
    return array;
}

void blocks::scale(sizes &into, const sizes &from, std::size_t factor) {
    into = from;
    for (std::size_t &each : into) {
        each *= factor;
    }
}

const std::size_t *blocks::nbytes(std::size_t element_bytes) {
    scale(count_bytes_, counts_, element_bytes);
    return count_bytes_.data();
}

const std::size_t *blocks::offsets(std::size_t element_bytes) {
    if (!offsets_) {
        return nullptr;
    }
    scale(offset_bytes_, *offsets_, element_bytes);
    return offset_bytes_.data();
}

std::size_t item_bytes(PyArrayObject *array) {
    return static_cast<std::size_t>(PyArray_ITEMSIZE(array));
}

void check_pair(const char *function, PyArrayObject *dst, PyArrayObject *src) {
    if (device_of(dst) != device_of(src)) {
        fail(function, "", OMPX_ERR_ARG, "dst and src are not on one device",
             "copy one of them by diomp.put or diomp.get");
    }
    if (!have_same_type(dst, src)) {
        fail(function,
             describe({"", "dst"}, nb::handle(reinterpret_cast<PyObject *>(dst))) + ", " +
                 describe({"", "src"}, nb::handle(reinterpret_cast<PyObject *>(src))),
             OMPX_ERR_ARG, "dst and src have different dtypes",
             "convert one of them, such as src.astype(dst.dtype)");
    }
}

// Each function is C's non-blocking one; the blocking one waits for the event.
event gatherv(nb::handle dst, const sizes &counts, nb::handle src, int root, const group *members,
              const std::optional<sizes> &offsets) {
    constexpr const char *function = "diomp.gatherv";
    blocks all(function, members, counts, offsets);
    PyArrayObject *const from = all.check_own("src", src, false);
    void *to = nullptr;
    if (check(ompx_group_rank(handle_of(members))) == root) {
        PyArrayObject *const target = all.check_all("dst", dst, true);
        check_pair(function, target, from);
        to = PyArray_DATA(target);
    }
    std::size_t const element = item_bytes(from);
    return start(nb::make_tuple(dst, src, all.kept()), [&](ompx_event_t *event) {
        if (all.device() != host_device) {
            return ompx_target_gatherv_nb(to, all.nbytes(element), all.offsets(element),
                                          PyArray_DATA(from), all.device(), root,
                                          handle_of(members), event);
        }
        return ompx_gatherv_nb(to, all.nbytes(element), all.offsets(element), PyArray_DATA(from),
                               root, handle_of(members), event);
    });
}

event scatterv(nb::handle dst, nb::handle src, const sizes &counts, int root, const group *members,
               const std::optional<sizes> &offsets) {
    constexpr const char *function = "diomp.scatterv";
    blocks all(function, members, counts, offsets);
    PyArrayObject *const to = all.check_own("dst", dst, true);
    void *from = nullptr;
    if (check(ompx_group_rank(handle_of(members))) == root) {
        PyArrayObject *const source = all.check_all("src", src, false);
        check_pair(function, to, source);
        from = PyArray_DATA(source);
    }
    std::size_t const element = item_bytes(to);
    return start(nb::make_tuple(dst, src, all.kept()), [&](ompx_event_t *event) {
        if (all.device() != host_device) {
            return ompx_target_scatterv_nb(PyArray_DATA(to), from, all.nbytes(element),
                                           all.offsets(element), all.device(), root,
                                           handle_of(members), event);
        }
        return ompx_scatterv_nb(PyArray_DATA(to), from, all.nbytes(element), all.offsets(element),
                                root, handle_of(members), event);
    });
}

event allgatherv(nb::handle dst, const sizes &counts, nb::handle src, const group *members,
                 const std::optional<sizes> &offsets) {
    constexpr const char *function = "diomp.allgatherv";
    blocks all(function, members, counts, offsets);
    PyArrayObject *const from = all.check_own("src", src, false);
    PyArrayObject *const to = all.check_all("dst", dst, true);
    check_pair(function, to, from);
    std::size_t const element = item_bytes(from);
    return start(nb::make_tuple(dst, src, all.kept()), [&](ompx_event_t *event) {
        if (all.device() != host_device) {
            return ompx_target_allgatherv_nb(PyArray_DATA(to), all.nbytes(element),
                                             all.offsets(element), PyArray_DATA(from), all.device(),
                                             handle_of(members), event);
        }
        return ompx_allgatherv_nb(PyArray_DATA(to), all.nbytes(element), all.offsets(element),
                                  PyArray_DATA(from), handle_of(members), event);
    });
}

event alltoallv(nb::handle dst, const sizes &dst_counts, nb::handle src, const sizes &src_counts,
                const group *members, const std::optional<sizes> &dst_offsets,
                const std::optional<sizes> &src_offsets) {
    constexpr const char *function = "diomp.alltoallv";
    blocks received(function, members, dst_counts, dst_offsets);
    blocks sent(function, members, src_counts, src_offsets);
    PyArrayObject *const to = received.check_all("dst", dst, true);
    PyArrayObject *const from = sent.check_all("src", src, false);
    check_pair(function, to, from);
    std::size_t const element = item_bytes(from);
    nb::object const objects = nb::make_tuple(dst, src, received.kept(), sent.kept());
    return start(objects, [&](ompx_event_t *event) {
        if (sent.device() != host_device) {
            return ompx_target_alltoallv_nb(PyArray_DATA(to), received.nbytes(element),
                                            received.offsets(element), PyArray_DATA(from),
                                            sent.nbytes(element), sent.offsets(element),
                                            sent.device(), handle_of(members), event);
        }
        return ompx_alltoallv_nb(PyArray_DATA(to), received.nbytes(element),
                                 received.offsets(element), PyArray_DATA(from),
                                 sent.nbytes(element), sent.offsets(element), handle_of(members),
                                 event);
    });
}

/// Defines NAME_nb, and NAME, which waits for its event.
template <typename... Arguments, typename... Extra>
void define(nb::module_ &m, const std::string &name, event (*call)(Arguments...),
            const std::string &arguments, const char *doc, const Extra &...extra) {
    std::string const signature = "def " + name + "(" + arguments + ") -> None";
    std::string const signature_nb = "def " + name + "_nb(" + arguments + ") -> Event";
    m.def(
        name.c_str(), [call](Arguments... given) { call(given...).wait(); }, extra...,
        nb::sig(signature.c_str()), doc);
    m.def((name + "_nb").c_str(), call, extra..., nb::sig(signature_nb.c_str()),
          "The non-blocking form: the arrays must not be used until the event is complete.");
}

} // namespace

void bind_variable_collectives(nb::module_ &m) {
    auto const dst = nb::arg("dst");
    auto const src = nb::arg("src");
    auto const counts = nb::arg("counts");
    auto const root = nb::arg("root") = 0;
    auto const none = nb::arg("group") = nb::none();
    auto const offsets = nb::arg("offsets") = nb::none();
    define(m, "gatherv", gatherv,
           "dst: diomp.devices.Operand | None, counts: collections.abc.Sequence[int], src: "
           "diomp.devices.Operand, "
           "root: int = 0, group: Group | None = None, "
           "offsets: collections.abc.Sequence[int] | None = None",
           "gather() of counts[i] elements of member i; offsets[i] elements from the start of dst, "
           "by default one block after another.",
           dst.none(), counts, src, root, none, offsets);
    define(m, "scatterv", scatterv,
           "dst: diomp.devices.Operand, src: diomp.devices.Operand | None, counts: "
           "collections.abc.Sequence[int], "
           "root: int = 0, group: Group | None = None, "
           "offsets: collections.abc.Sequence[int] | None = None",
           "scatter() of counts[i] elements to member i.", dst, src.none(), counts, root, none,
           offsets);
    define(m, "allgatherv", allgatherv,
           "dst: diomp.devices.Operand, counts: collections.abc.Sequence[int], src: "
           "diomp.devices.Operand, "
           "group: Group | None = None, offsets: collections.abc.Sequence[int] | None = None",
           "allgather() of counts[i] elements of member i.", dst, counts, src, none, offsets);
    define(
        m, "alltoallv", alltoallv,
        "dst: diomp.devices.Operand, dst_counts: collections.abc.Sequence[int], src: "
        "diomp.devices.Operand, "
        "src_counts: collections.abc.Sequence[int], group: Group | None = None, "
        "dst_offsets: collections.abc.Sequence[int] | None = None, "
        "src_offsets: collections.abc.Sequence[int] | None = None",
        "Block i of src, of src_counts[i] elements, goes to member i, which passes that number as "
        "its dst_counts[rank of the caller]; the blocks of dst are those of the members.",
        dst, nb::arg("dst_counts"), src, nb::arg("src_counts"), none,
        nb::arg("dst_offsets") = nb::none(), nb::arg("src_offsets") = nb::none());
}

} // namespace diomp::python
