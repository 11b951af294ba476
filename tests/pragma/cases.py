# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of diagnostics.py."""
from dataclasses import dataclass, field

BOTH = ("c", "c++")
TARGET_NAMES = ("device_bcast, device_reduce, device_allreduce, device_scan, device_exscan, device_gather, device_allgather, "
                "device_scatter, device_alltoall, device_reduce_scatter, device_gatherv, device_allgatherv, device_scatterv, "
                "device_alltoallv")


@dataclass
class Case:
    name: str
    text: str
    messages: list  # a tuple holds the words of several versions of clang
    languages: tuple = BOTH
    whole: bool = False  # the text is the whole file
    openmp: bool = True
    options: list = field(default_factory=list)


def case(name, text, *messages, **more):
    return Case(name, text, list(messages), **more)


CASES = [
    # ---- the words ----
    case("unknown directive", "#pragma ompx @device_bcast(a)",
         "warning: unknown pragma ignored: after 'ompx' comes barrier, fence, target"),
    case("unknown target directive", "#pragma ompx target @device_bcats(a, g)",
         "warning: unknown pragma ignored: after 'ompx target' comes " + TARGET_NAMES),
    case("nothing after target", "#pragma ompx @target",
         "warning: unknown pragma ignored: after 'ompx target' comes " + TARGET_NAMES),
    case("unknown, and not to be said", "#pragma ompx nonsense", options=["-Wno-unknown-pragmas"]),
    case("unknown as an error", "#pragma ompx @nonsense", "error: unknown pragma ignored", options=["-Werror"]),
    case("barrier is no target directive", "#pragma ompx target @barrier", "warning: unknown pragma ignored"),
    case("unknown clause", "#pragma ompx target device_bcast(a, g) @priority(1)",
         "error: unknown clause 'priority'; 'device_bcast' takes device, root, nowait, depend"),
    case("no root", "#pragma ompx target device_allreduce(+ : a, g) @root(1)",
         "error: unknown clause 'root'; 'device_allreduce' takes device, nowait, depend"),
    case("clauses of a barrier", "#pragma ompx barrier @nowait", "error: unknown clause 'nowait'; 'barrier' takes group"),
    case("device twice", "#pragma ompx target device_bcast(a, g) device(0) root(0) @device(1)",
         "error: 'device' comes twice"),
    case("root twice", "#pragma ompx target device_bcast(a, g) root(0) @root(0)", "error: 'root' comes twice"),
    case("nowait twice", "#pragma ompx target device_bcast(a, g) nowait @nowait", "error: 'nowait' comes twice"),
    case("group twice", "#pragma ompx fence group(g) @group(g)", "error: 'group' comes twice"),
    case("depend twice", "#pragma ompx target device_bcast(a, g) depend(in: a) depend(out: b)"),
    case("commas between clauses", "#pragma ompx target device_bcast(a, g) device(0), root(0), nowait"),
    case("no parenthesis", "#pragma ompx target device_bcast @a, g", "error: expected '(' after 'device_bcast'"),
    case("nothing after the name", "#pragma ompx target device_bcast@", "error: expected '(' after 'device_bcast'"),
    case("no parenthesis of a clause", "#pragma ompx target device_bcast(a, g) root @2", "error: expected '(' after 'root'"),
    case("open parenthesis", "#pragma ompx target device_bcast@(a, g@",
         "note: to match this '('", "error: expected ')'"),
    case("open clause", "#pragma ompx target device_bcast(a, g) root@(1@",
         "note: to match this '('", "error: expected ')'"),
    case("crossed brackets", "#pragma ompx target device_bcast(a[i@), g)", "error: ')' closes nothing here"),
    case("empty list", "#pragma ompx target device_bcast(@)", "error: expected an expression"),
    case("empty variable", "#pragma ompx target device_bcast(@, g)", "error: expected an expression"),
    case("empty group", "#pragma ompx target device_bcast(a, @)", "error: expected an expression"),
    case("empty clause", "#pragma ompx target device_bcast(a, g) device(@)", "error: expected an expression"),
    case("too many", "#pragma ompx target device_bcast(a, g, @b)", "error: 'device_bcast' takes a variable and a group"),
    case("too many of two", "#pragma ompx target device_gather(a, b, g, @p)",
         "error: 'device_gather' takes a destination, a source and a group"),
    case("no source", "#pragma ompx target device_gather(a@)", "error: 'device_gather' needs a destination and a source"),
    case("no operator", "#pragma ompx target device_reduce(@a, g)",
         "error: expected an operator and ':' in front of the list, as in (+ : x); operators are + * min max & | ^ && || avg"),
    case("no colon", "#pragma ompx target device_reduce(@+ a, g)", "error: expected an operator and ':'"),
    case("unknown operator", "#pragma ompx target device_reduce(@- : a, g)",
         "error: unknown operator '-'; operators are + * min max & | ^ && || avg"),
    case("operator where none is", "#pragma ompx target device_bcast(@+ : a, g)", "error: 'device_bcast' takes no operator"),
    case("extra tokens", "#pragma ompx target device_bcast(a, g) @;",
         "warning: extra tokens at end of '#pragma ompx target' - ignored"),
    case("extra tokens of a fence", "#pragma ompx fence @+ 1", "warning: extra tokens at end of '#pragma ompx' - ignored"),
    case("two sections", "#pragma ompx target device_bcast(s[0@:2][0:3], g)",
         "error: only the last dimension may have a section"),
    case("a section and more", "#pragma ompx target device_bcast(s[0@:2].x, g)",
         "error: an array section is expected at the end, as in a[0:n]"),
    case("stride", "#pragma ompx target device_bcast(a[0@:2:2], g)", "error: a section with a stride is not contiguous"),
    case("no counts", "#pragma ompx target @device_gatherv(a, p[0:n], g) root(1)",
         "error: 'device_gatherv' needs the clause 'counts'"),
    case("no counts of the source", "#pragma ompx target @device_alltoallv(a, p[0:n], g) dst_counts(b) dst_displs(b)",
         "error: 'device_alltoallv' needs the clause 'src_counts'"),
    case("no counts of the destination", "#pragma ompx target @device_alltoallv(a, p[0:n], g) src_counts(b)",
         "error: 'device_alltoallv' needs the clause 'dst_counts'"),
    case("counts of both", "#pragma ompx target device_alltoallv(a, p[0:n], g) @counts(b)",
         "error: unknown clause 'counts'; 'device_alltoallv' takes dst_counts, dst_displs, src_counts, src_displs, device, "
         "nowait, depend"),
    case("counts of one", "#pragma ompx target device_scatterv(a, p[0:n], g) @src_counts(b)",
         "error: unknown clause 'src_counts'; 'device_scatterv' takes counts, displs, device, root, nowait, depend"),
    case("counts where none are", "#pragma ompx target device_gather(a, p[0:n], g) @counts(b)",
         "error: unknown clause 'counts'; 'device_gather' takes device, root, nowait, depend"),
    case("counts twice", "#pragma ompx target device_gatherv(a, p[0:n], g) counts(b) @counts(b)",
         "error: 'counts' comes twice"),
    case("empty counts", "#pragma ompx target device_gatherv(a, p[0:n], g) counts(@)", "error: expected an expression"),
    case("no source of blocks", "#pragma ompx target device_gatherv(a@) counts(b)",
         "error: 'device_gatherv' needs a destination and a source"),
    case("all of a v form", "#pragma ompx target device_scatterv(a, p[0:n], g) displs(b), counts(&b[1]) root(1) nowait"),
    # ---- the types ----
    case("one count", "#pragma ompx target device_gatherv(a, p[0:n], g) counts(@i)",
         "error: subscripted value is not an array, pointer, or vector"),
    case("counts of another type", "#pragma ompx target device_gatherv(a, p[0:n], g) counts(@a)",
         "error: counts and displacements are integers, and these are of type 'double'"),
    case("displacements of another type", "#pragma ompx target device_allgatherv(a, p[0:n], g) counts(b) displs(@&p)",
         "error: counts and displacements are integers, and these are of type 'double *'"),
    case("undeclared counts", "#pragma ompx target device_allgatherv(a, p[0:n], g) counts(@nobody) nowait",
         "error: use of undeclared identifier 'nobody'"),
    case("counts in a vector", "std::vector<int> counts(4);\n"
         "#pragma ompx target device_allgatherv(a, p[0:n], g) counts(counts)", languages=("c++",)),
    case("blocks of pointers", "int *pointers[3] = {0}; (void)pointers;\n"
         "#pragma ompx target device_allgatherv(@pointers, p[0:n], g) counts(b)",
         "error: 'pointers' holds pointers, which mean nothing at other ranks"),
    case("const blocks", "#pragma ompx target device_gatherv(@fixed[0:n], p[0:n], g) counts(b)",
         "error: 'fixed[0:n]' is const, and 'device_gatherv' writes it"),
    case("source of blocks", "#pragma ompx target device_scatterv(a, @p, g) counts(b)",
         "error: 'p' is a pointer: it needs an array section"),
    case("pointer", "#pragma ompx target device_bcast(@p, g)",
         "error: 'p' is a pointer: it needs an array section, as in p[0:n]"),
    case("pointer as source", "#pragma ompx target device_gather(a, @p, g)",
         "error: 'p' is a pointer: it needs an array section, as in p[0:n]"),
    case("pointer in parentheses", "#pragma ompx target device_allreduce(+ : @(p), g)", "error: '(p)' is a pointer"),
    case("not an lvalue", "#pragma ompx target device_bcast(@i + 1, g)", "error: cannot take the address of an rvalue"),
    case("undeclared", "#pragma ompx target device_bcast(@nobody, g)", "error: use of undeclared identifier 'nobody'"),
    case("undeclared in a sum", "#pragma ompx target device_allreduce(+ : @nobody, g)",
         "error: use of undeclared identifier 'nobody'"),
    case("undeclared length", "#pragma ompx target device_reduce(+ : a[0:@nobody], g)",
         "error: use of undeclared identifier 'nobody'"),
    case("undeclared group", "#pragma ompx target device_allreduce(+ : a, @nobody) nowait",
         "error: use of undeclared identifier 'nobody'"),
    case("undeclared source", "#pragma ompx target device_reduce_scatter(+ : a, @nobody[1:2]) nowait",
         "error: use of undeclared identifier 'nobody'"),
    case("not an lvalue in a sum", "#pragma ompx target device_allreduce(+ : @1.0, g)",
         "error: cannot take the address of an rvalue"),
    case("section of a number", "#pragma ompx target device_bcast(@i[0:2], g)",
         "error: subscripted value is not an array"),
    case("section of a vector", "#pragma ompx target device_bcast(@v[0:2], g)",
         "error: a section is of an array or a pointer, and this is of type 'std::vector<double>'", languages=("c++",)),
    case("section without length", "#pragma ompx target device_bcast(p[1@:], g)",
         "error: the section needs a length: 'double *' does not say how long it is"),
    case("negative length", "#pragma ompx target device_bcast(p[0:@-2], g)", "error: the section's length is negative"),
    case("length of the wrong type", "#pragma ompx target device_bcast(p[0:@1.5], g)",
         "error: a section's length must be an integer, and this is of type"),
    case("no group", "#pragma ompx target device_bcast(a, @i)",
         "error: incompatible integer to pointer conversion initializing 'ompx_group_t'", languages=("c",)),
    case("no group in C++", "#pragma ompx target device_bcast(a, @i)",
         ("error: cannot initialize a variable of type 'ompx_group_t' (aka 'ompx_group *') with an lvalue of type 'int'",
          "error: cannot initialize a variable of type 'ompx_group_t' (aka 'struct ompx_group *') with an lvalue of "
          "type 'int'"),
         languages=("c++",)),
    case("another pointer", "#pragma ompx target device_bcast(a, @@p)",
         ("warning: incompatible pointer types initializing 'ompx_group_t'",
          "error: incompatible pointer types initializing 'ompx_group_t'"),
         "error: the group is of type 'double *', not ompx_group_t", languages=("c",)),
    case("group of a barrier", "#pragma ompx barrier group(@i)",
         "error: cannot initialize a variable of type 'ompx_group_t'", languages=("c++",)),
    case("const", "#pragma ompx target device_bcast(@fixed[0:n], g)",
         "error: 'fixed[0:n]' is const, and 'device_bcast' writes it"),
    case("const source", "#pragma ompx target device_gather(p[0:n], fixed[0:n], g)"),
    case("structure in a sum", "#pragma ompx target device_allreduce(+ : @t, g)",
         "error: operator '+' does not work on elements of type 'struct point'", languages=("c",)),
    case("structure in a sum in C++", "#pragma ompx target device_allreduce(+ : @s[0:2], g)",
         "error: operator '+' does not work on elements of type 'struct point'", languages=("c++",)),
    case("bits of a double", "#pragma ompx target device_allreduce(^ : @a, g)",
         "error: operator '^' does not work on elements of type 'double'"),
    case("pointers in a sum", "int *pointers[3] = {0}; (void)pointers;\n"
         "#pragma ompx target device_allreduce(+ : @pointers, g)",
         "error: operator '+' does not work on elements of type 'int *'"),
    case("least complex number", "#pragma ompx target device_allreduce(min : @z, g)",
         "error: operator 'min' does not work on elements of type '_Complex float'", languages=("c",)),
    case("sum of truths", "#pragma ompx target device_allreduce(+ : @yes, g)",
         "error: operator '+' does not work on elements of type", languages=BOTH),
    case("two types", "#pragma ompx target device_reduce_scatter(+ : a, @b, g)",
         "error: the source has elements of type 'int', the destination of type 'double'"),
    case("many dimensions", "int m[1][1][1][1][1][1][2]; (void)m;\n#pragma ompx target device_allreduce(+ : @m, g)",
         "error: 'm' has 7 dimensions, more than 6"),
    case("few dimensions", "int m[1][1][1][1][1][1][2]; (void)m;\n#pragma ompx target device_allreduce(+ : m[0], g)"),
    case("not to be copied", "#pragma ompx target device_bcast(@text, g)",
         "error: type 'std::string' (aka 'basic_string<char>') cannot be copied byte by byte", languages=("c++",)),
    case("in a target region", "#pragma omp target map(a)\n{\n#pragma ompx target @device_bcast(a, g)\n}",
         "error: 'device_bcast' inside a target region: communication is the host's"),
    case("barrier in a target region", "#pragma omp target\n{\n#pragma ompx @barrier\n}",
         "error: 'barrier' inside a target region"),
    case("depend's own words", "#pragma ompx target device_bcast(a, g) depend(@sideways: a)",
         "error: expected depend modifier(iterator) or 'in', 'out', 'inout'"),
    # ---- the file ----
    case("no diomp.h", "double a[4];\nvoid test(void) {\n#pragma ompx target @device_bcast(a)\n}\n",
         "error: 'device_bcast' needs #include <diomp.h> before it", whole=True),
    case("no diomp.h for a fence", "void test(void) {\n#pragma ompx @fence\n}\n",
         "error: 'fence' needs #include <diomp.h> before it", whole=True),
    case("outside of functions", "#include <diomp.h>\ndouble a[4];\n#pragma ompx target @device_bcast(a)\n",
         "error: 'device_bcast' stands outside of any function", whole=True),
    case("without OpenMP", "#pragma ompx target @device_bcast(a, g) nowait",
         "warning: 'nowait' and 'depend' are ignored without OpenMP (-fopenmp); 'device_bcast' blocks", openmp=False),
    case("depend without OpenMP", "#pragma ompx target @device_bcast(a, g) depend(in: a)",
         "warning: 'nowait' and 'depend' are ignored without OpenMP", openmp=False),
    case("blocking without OpenMP", "#pragma ompx target device_bcast(a, g) device(0) root(n)", openmp=False),
    case("template", """#include <diomp.h>
template <typename T> void share(T value, ompx_group_t g) {
#pragma ompx target device_bcast(@value, g)
}
void test(double *p) {
    share(1, nullptr);
    @share(p, nullptr);
}
""", "error: 'value' is a pointer: it needs an array section", "note: in instantiation of 'share<double *>'",
         whole=True, languages=("c++",)),
    case("operator in a template", """#include <diomp.h>
template <typename T> struct sums {
    T value[4];
    void add() {
#pragma ompx target device_allreduce(& : @value)
    }
};
void test(sums<int> &a, sums<float> &b) {
    a.add();
    b.@add();
}
""", "error: operator '&' does not work on elements of type 'float'", "note: in instantiation of 'sums<float>::add'",
         whole=True, languages=("c++",)),
    case("never instantiated", """#include <diomp.h>
template <typename T> void share(T *p, double *q) {
#pragma ompx target device_bcast(p[0:2])
#pragma ompx target device_bcast(p)
#pragma ompx target device_bcast(@q)
}
""", "error: 'q' is a pointer: it needs an array section", whole=True, languages=("c++",)),
    case("in a macro", """#include <diomp.h>
#define ALL a[0:4]
#define SHARE(what) _Pragma("ompx target device_bcast(what)")
void test(double *a) {
#pragma ompx target device_bcast(ALL)
    _Pragma("ompx target device_bcast(a[0:2])") _Pragma("ompx barrier");
}
""", whole=True),
]
