# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: one test as an object of JSON. Variables: name, outcome, seconds, reason. Input: its output.
# Figures are the lines of our benchmarks and apps; the rest is kept by its end.
function quoted(text) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    gsub(/[^ -~]/, " ", text) # gawk takes no octal range outside of the C locale
    return "\"" text "\""
}
function figure(what, bytes, value, unit) {
    figures = figures (figures == "" ? "" : ", ") "{\"what\": " quoted(what) ", \"bytes\": " bytes ", \"value\": " value \
        ", \"unit\": " quoted(unit) "}"
}
function is_number(text) { return text ~ /^[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?$/ }
{
    line = $0
    sub(/^\[[0-9]+\] /, "") # which rank it is from
    if ($1 == "figure" && NF == 5 && is_number($3) && is_number($4)) {
        figure($2, $3, $4, $5)
    } else if (NF == 10 && $4 ~ /^[0-9]+$/ && $6 ~ /^[0-9]+$/ && is_number($7)) { # a table of benchmarks
        figure($2 "-" $3, $6, $7, "us")
    } else if (NF == 3 && $2 ~ /^[0-9]+$/ && is_number($3)) {
        figure($1, $2, $3, "us")
    } else if (($1 == "speed" || $1 == "time") && is_number($2)) {
        unit = $3
        sub(/,$/, "", unit)
        figure($1, 0, $2, unit)
    }
    tail[NR % 20] = line
}
END {
    printf "{\"name\": %s, \"outcome\": %s, \"seconds\": %s, \"reason\": %s,\n     \"figures\": [%s],\n     \"tail\": [", quoted(name),
        quoted(outcome), seconds, quoted(reason), figures
    for (i = NR > 20 ? NR - 19 : 1; i <= NR; ++i) {
        printf "%s%s", quoted(tail[i % 20]), i < NR ? ", " : ""
    }
    printf "]}"
}
