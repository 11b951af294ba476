# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Reads the --help of a tool and prints a line per option or subcommand: name, kind of its value (- for a subcommand), help,
# separated by tabs. Becomes part of the completion for each shell, between single quotes, so it has none itself.
function flush(   list, count, i) {
    count = split(names, list, ",")
    for (i = 1; i <= count; i++) printf "%s\t%s\t%s\n", list[i], value, text
    names = ""
}
/^Subcommands:/ { flush(); commands = 1; next }
/^[^ ]/ { flush(); commands = 0; next }
/^  [^ ]/ {
    flush()
    line = substr($0, 3)
    gap = match(line, /  +/)
    left = gap ? substr(line, 1, gap - 1) : line
    text = gap ? substr(line, gap + RLENGTH) : ""
    if (line !~ /^-/ && !commands) next
    count = split(left, words, " ")
    names = words[1]
    # After the names: a value, or Needs: and Excludes:
    value = count > 1 && words[2] !~ /:$/ ? words[2] : ""
    sub(/[:={[].*/, "", value)
    if (commands) value = "-"
    next
}
/^   / && names != "" {
    sub(/^ +/, "")
    text = text (text == "" ? "" : " ") $0
}
END { flush() }
