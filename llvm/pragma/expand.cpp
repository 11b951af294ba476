// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "expand.h"

#include "code.h"

#include <clang/Basic/TargetInfo.h>
#include <clang/Frontend/CompilerInstance.h>
#include <utility>
#include <vector>

namespace diomp::pragma {
namespace {

using clang::SourceLocation;

class expander {
public:
    expander(unit_state &state, std::size_t number)
        : state_(state), number_(number), directive_(state.directives[number]),
          cxx_(state.compiler.getLangOpts().CPlusPlus),
          code_(state.compiler.getPreprocessor(), directive_.location) {}

    tokens run();

private:
    /// A variable of this directive; the number distinguishes nested and neighbouring directives.
    std::string name(const std::string &what) const {
        return "__ompx_" + what + "_" + std::to_string(number_);
    }
    std::string mark(const std::string &what, role meaning, const item *of, SourceLocation where);
    std::string global(const std::string &what) const { return cxx_ ? "::" + what : what; }
    std::string deduced() const { return cxx_ ? "auto " : "__extension__ __auto_type "; }
    std::string as_size(const std::string &value) const {
        return cxx_ ? "static_cast<::size_t>(" + value + ")" : "(size_t)(" + value + ")";
    }
    std::string as_buffer(const std::string &pointer) const;

    void define(const std::string &type, const std::string &variable, const tokens &value,
                const char *otherwise);
    void define_buffer(const item &buffer, const std::string &what, role meaning);
    std::vector<std::pair<std::string, std::string>> element_types() const;
    std::string define_element(const item &buffer, const std::string &what);
    void define_type_and_count(const std::string &bytes);
    void define_numbers();
    void define_list(const std::string &what, const tokens &words, const std::string &element);
    void define_lists(const item &buffer, const std::string &what, const block_clauses &blocks);
    void define_all_lists();
    std::vector<std::string> list_names() const;
    std::string arguments(bool blocking) const;
    void call(bool blocking);
    void task();

    unit_state &state_;
    std::size_t number_;
    const directive &directive_;
    bool cxx_;
    code code_;
};

std::string expander::mark(const std::string &what, role meaning, const item *of,
                           SourceLocation where) {
    auto made = name(what);
    const auto &identifier = state_.compiler.getPreprocessor().getIdentifierTable().get(made);
    state_.variables[&identifier] = {number_, meaning, of, where};
    return made;
}

// Casts away const: the checks report read-only buffers with a clearer message than a failed
// conversion.
std::string expander::as_buffer(const std::string &pointer) const {
    return cxx_ ? "const_cast<void *>(static_cast<const volatile void *>(" + pointer + "))"
                : "(void *)(uintptr_t)(" + pointer + ")";
}

void expander::define(const std::string &type, const std::string &variable, const tokens &value,
                      const char *otherwise) {
    if (value.empty()) {
        code_.at(directive_.location).add(type + variable + " = " + otherwise + ";");
        return;
    }
    code_.at(value.front().getLocation()).add(type + variable + " = (").add(value).add(");");
}

/// Defines a pointer to the buffer's first element, with its type, and the size in bytes.
void expander::define_buffer(const item &buffer, const std::string &what, role meaning) {
    auto const first = mark(what, meaning, &buffer, buffer.location());
    auto const bytes = name(what + "_bytes");
    auto const element = "sizeof(*" + first + ")";
    // Only one of two buffers determines the size, but the tokens of both are evaluated.
    auto const unused = "(void)" + bytes + ";";
    if (!buffer.array_section) {
        code_.at(buffer.location()).add(deduced() + first + " = __builtin_addressof((");
        code_.add(buffer.base).add("));");
        code_.add(global("size_t ") + bytes + " = " + element + ";" + unused);
        return;
    }
    const auto &bounds = *buffer.array_section;
    std::string low = "0";
    if (!bounds.low.empty()) {
        low = mark(what + "_low", role::low, &buffer, bounds.low.front().getLocation());
        define(deduced(), low, bounds.low, "0");
    }
    // The checks determine the base from the subscript.
    code_.at(buffer.location()).add(deduced() + first + " = __builtin_addressof((");
    code_.add(buffer.base).add(")[");
    code_.at(bounds.low.empty() ? bounds.colon : bounds.low.front().getLocation()).add(low);
    code_.at(buffer.location()).add("]);");
    if (bounds.length.empty()) {
        code_.at(bounds.colon).add(global("size_t ") + bytes + " = sizeof(__typeof__(");
        code_.add(buffer.base).add(")) - " + as_size(low) + " * " + element + ";" + unused);
        return;
    }
    auto const length =
        mark(what + "_length", role::length, &buffer, bounds.length.front().getLocation());
    define(deduced(), length, bounds.length, "0");
    code_.add(global("size_t ") + bytes + " = " + as_size(length) + " * " + element + ";" + unused);
}

/// The types with a number in diomp.h, and the numbers' names without OMPX_.
std::vector<std::pair<std::string, std::string>> expander::element_types() const {
    const auto &target = state_.compiler.getTarget();
    bool const wide_long = target.getLongWidth() == 64;
    bool const char_is_signed = state_.compiler.getLangOpts().CharIsSigned;
    std::vector<std::pair<std::string, std::string>> types{
        {cxx_ ? "bool" : "_Bool", "BOOL"},
        {"char", char_is_signed ? "INT8" : "UINT8"},
        {"signed char", "INT8"},
        {"unsigned char", "UINT8"},
        {"short", "INT16"},
        {"unsigned short", "UINT16"},
        {"int", "INT32"},
        {"unsigned", "UINT32"},
        {"long", wide_long ? "INT64" : "INT32"},
        {"unsigned long", wide_long ? "UINT64" : "UINT32"},
        {"long long", "INT64"},
        {"unsigned long long", "UINT64"},
        {"float", "FLOAT"},
        {"double", "DOUBLE"},
        {"long double", "LONG_DOUBLE"},
        {"_Complex float", "FLOAT_COMPLEX"},
        {"_Complex double", "DOUBLE_COMPLEX"},
    };
    if (target.hasFloat16Type()) {
        types.emplace_back("_Float16", "FLOAT16");
    }
    if (target.hasBFloat16Type()) {
        types.emplace_back("__bf16", "BFLOAT16");
    }
    return types;
}

/// Defines a pointer to an element below all dimensions. An array decays to a pointer to its first
/// element, which removes one dimension at a time; 5 is GCC's class of pointers and arrays. A
/// pointer to anything else is left unchanged, so that types which the checks reject still compile
/// here. C++ could use type traits, but a variable with an error has no type, and the compiler
/// would report that as well.
std::string expander::define_element(const item &buffer, const std::string &what) {
    code_.at(buffer.location());
    std::string element = name(what);
    for (int i = 0; i < max_dimensions; ++i) {
        auto const next = name(what + "_element" + std::to_string(i));
        code_.add(deduced() + next + " = __builtin_choose_expr(__builtin_classify_type(*" +
                  element + ") == 5, *" + element + ", " + element + ");");
        element = next;
    }
    return element;
}

void expander::define_type_and_count(const std::string &bytes) {
    auto const element = define_element(directive_.dst, "dst");
    std::string numbers;
    for (const auto &[type, number] : element_types()) {
        numbers += type + ": " + global("OMPX_" + number) + ", ";
    }
    code_.add(global("ompx_type_t ") + name("type") + " = __extension__ _Generic(*" + element +
              ", " + numbers + "default: 0);");
    code_.add(global("size_t ") + name("size") + " = " + bytes + " / sizeof(*" + element + ");");
}

/// Defines a list with one number per member of the group, in bytes, converted from the program's
/// list of integers of any type in elements. The copy is needed because a task may make the call
/// after the program's list is gone.
void expander::define_list(const std::string &what, const tokens &words,
                           const std::string &element) {
    auto const list = name(what);
    auto const size_type = global("size_t ");
    if (words.empty()) {
        code_.at(directive_.location).add(size_type + "*" + list + " = ");
        code_.add(cxx_ ? "nullptr;" : "0;");
        return;
    }
    auto const given = mark(what + "_given", role::list, nullptr, words.front().getLocation());
    auto const member = name(what + "_member");
    code_.at(words.front().getLocation()).add(deduced() + given + " = __builtin_addressof((");
    code_.add(words).add(")[0]);");
    auto const storage =
        "__builtin_malloc(" + as_size(name("members")) + " * sizeof(" + global("size_t") + "))";
    code_.add(size_type + "*" + list + " = " +
              (cxx_ ? "static_cast<" + global("size_t") + " *>(" + storage + ")"
                    : "(size_t *)" + storage) +
              ";");
    // A cast that accepts any type: the checks report lists that are not integers.
    auto const number = (cxx_ ? size_type : "(size_t)") + "(" + given + "[" + member + "])";
    code_.add("for (int " + member + " = 0; " + list + " && " + member + " < " + name("members") +
              "; ++" + member + ") {" + list + "[" + member + "] = " + number + " * sizeof(*" +
              element + ");}");
}

void expander::define_lists(const item &buffer, const std::string &what,
                            const block_clauses &blocks) {
    auto const element = define_element(buffer, what);
    define_list(what + "_counts", blocks.counts, element);
    define_list(what + "_displs", blocks.displs, element);
}

void expander::define_all_lists() {
    code_.add("int " + name("members") + " = " + global("ompx_group_size") + "(" + name("group") +
              ");");
    // If the group is invalid, the call reports it; the lists must still be valid.
    code_.add("if (" + name("members") + " < 1) {" + name("members") + " = 1;}");
    if (directive_.kind->dst_has_lists()) {
        define_lists(directive_.dst, "dst", directive_.dst_blocks);
    }
    if (directive_.kind->src_has_lists()) {
        define_lists(directive_.src, "src", directive_.src_blocks);
    }
}

std::vector<std::string> expander::list_names() const {
    std::vector<std::string> names;
    for (std::string const what : {"dst", "src"}) {
        if (what == "dst" ? directive_.kind->dst_has_lists() : directive_.kind->src_has_lists()) {
            names.push_back(name(what + "_counts"));
            names.push_back(name(what + "_displs"));
        }
    }
    return names;
}

/// Defines the call's other arguments as plain variables, which a task copies.
void expander::define_numbers() {
    const auto &kind = *directive_.kind;
    define_buffer(directive_.dst, "dst", role::dst);
    if (kind.has_src) {
        define_buffer(directive_.src, "src", role::src);
    }
    code_.at(directive_.location);
    code_.add("void *" + name("to") + " = " + as_buffer(name("dst")) + ";");
    if (kind.has_src) {
        code_.add("void *" + name("from") + " = " + as_buffer(name("src")) + ";");
    }
    if (kind.has_lists()) {
        define_all_lists();
        return;
    }
    auto const bytes = name(kind.size == block::dst ? "dst_bytes" : "src_bytes");
    if (kind.has_operator) {
        define_type_and_count(bytes);
        return;
    }
    if (kind.size == block::per_member_of_src) {
        // If the group is invalid, the call reports it.
        auto const members = name("members");
        code_.add("int " + members + " = " + global("ompx_group_size") + "(" + name("group") +
                  ");");
        code_.add(global("size_t ") + name("size") + " = " + bytes + " / " +
                  as_size(members + " > 0 ? " + members + " : 1") + ";");
        return;
    }
    code_.add(global("size_t ") + name("size") + " = " + bytes + ";");
}

std::string expander::arguments(bool blocking) const {
    const auto &kind = *directive_.kind;
    auto const lists_of = [&](const std::string &what) {
        return ", " + name(what + "_counts") + ", " + name(what + "_displs");
    };
    std::string text = name("to") + (kind.dst_has_lists() ? lists_of("dst") : "");
    if (kind.has_src) {
        text += ", " + name("from") + (kind.src_has_lists() ? lists_of("src") : "");
    } else if (kind.has_operator) {
        text += ", " + name("to");
    }
    text += ", " + name("device") + (kind.has_lists() ? "" : ", " + name("size"));
    if (kind.has_operator) {
        text += ", " + name("type") + ", " + global(directive_.op->value.str());
    }
    if (kind.has_root) {
        text += ", " + name("root");
    }
    text += ", " + name("group");
    return blocking ? text : text + ", &" + name("event");
}

void expander::call(bool blocking) {
    auto const function = global(directive_.kind->call.str() + (blocking ? "" : "_nb"));
    code_.at(directive_.location).add(function + "(" + arguments(blocking) + ");");
    for (const auto &list : list_names()) { // the call has copied them
        code_.add("__builtin_free(" + list + ");");
    }
}

/// Generates the task. With `nowait` it completes when the event does. Without it, the thread waits
/// for the task's dependences and then makes the blocking call, because OpenMP lets an undeferred
/// task return before its detach event is fulfilled.
void expander::task() {
    const auto &kind = *directive_.kind;
    code_.at(directive_.location);
    if (directive_.nowait) {
        code_.add(global("omp_event_handle_t ") + name("done") + (cxx_ ? "{};" : " = 0;"));
    }
    code_.begin_openmp().add("task ");
    code_.add(directive_.nowait ? "detach(" + name("done") + ")" : "if(0)");
    std::string copied =
        name("to") + ", " + name("device") + ", " + name("group") +
        (kind.has_lists() ? "" : ", " + name("size")) + (kind.has_src ? ", " + name("from") : "") +
        (kind.has_operator ? ", " + name("type") : "") + (kind.has_root ? ", " + name("root") : "");
    for (const auto &list : list_names()) {
        copied += ", " + list;
    }
    code_.add("firstprivate(" + copied + ")");
    for (const auto &depend : directive_.depends) {
        code_.add(depend);
    }
    code_.end_openmp().add("{");
    if (directive_.nowait) {
        code_.add(global("ompx_event_t ") + name("event") + " = " + (cxx_ ? "nullptr;" : "0;"));
        call(false);
        code_.add(global("ompx_event_detach") + "(&" + name("event") + ", " + name("done") + ");");
    } else {
        call(true);
    }
    code_.add("}");
}

tokens expander::run() {
    code_.add("{");
    // Without ::, as messages show the name.
    const auto &words = directive_.group;
    define("ompx_group_t ",
           mark("group", role::group, nullptr,
                words.empty() ? directive_.location : words.front().getLocation()),
           words, cxx_ ? "nullptr" : "0");
    if (!directive_.kind->on_target) {
        code_.at(directive_.location);
        code_.add(global(directive_.kind->call.str()) + "(" + name("group") + ");}");
        return code_.made();
    }
    define("int ", name("device"), directive_.device, "-2"); // OMPX_GROUP_DEVICES
    if (directive_.kind->has_root) {
        define("int ", name("root"), directive_.root, "0");
    }
    define_numbers();
    if (directive_.nowait || !directive_.depends.empty()) {
        task();
    } else {
        call(true);
    }
    code_.at(directive_.location).add("}");
    return code_.made();
}

} // namespace

tokens expand(unit_state &state, std::size_t directive_number) {
    return expander(state, directive_number).run();
}

} // namespace diomp::pragma
