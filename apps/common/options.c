// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_int(const char *text, int *value) {
    char *end = NULL;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < 0 || number > INT_MAX) {
        return 0;
    }
    *value = (int)number;
    return 1;
}

static int parse_real(const char *text, double *value) {
    char *end = NULL;
    const double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number) || number <= 0) {
        return 0;
    }
    *value = number;
    return 1;
}

static int parse_word(const char *text, int with_auto, int *value) {
    if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0) {
        *value = text[1] == 'n';
        return 1;
    }
    if (with_auto && strcmp(text, "auto") == 0) {
        *value = -1;
        return 1;
    }
    return 0;
}

// Stores the option's arguments, which start at argv[0]; returns their number, -1 if one is missing
// or malformed.
static int parse_arguments(const option_row *row, int argc, char **argv) {
    if (row->kind == OPTION_FLAG) {
        *(int *)row->into = 1;
        return 0;
    }
    if (argc < 1) {
        return -1;
    }
    switch (row->kind) {
    case OPTION_SWITCH:
    case OPTION_AUTO:
        return parse_word(argv[0], row->kind == OPTION_AUTO, row->into) ? 1 : -1;
    case OPTION_REAL:
        return parse_real(argv[0], row->into) ? 1 : -1;
    case OPTION_TEXT:
        *(const char **)row->into = argv[0];
        return 1;
    default:
        break;
    }
    int *numbers = row->into;
    int consumed = 0;
    while (consumed < row->values && consumed < argc &&
           parse_int(argv[consumed], &numbers[consumed])) {
        ++consumed;
    }
    if (row->or_one && consumed == 1 && (argc == 1 || argv[1][0] == '-')) {
        for (int i = 1; i < row->values; ++i) {
            numbers[i] = numbers[0];
        }
        return 1;
    }
    return consumed == row->values ? consumed : -1;
}

options_result options_parse(const option_row *rows, size_t count, int argc, char **argv,
                             char *message, size_t message_size) {
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return OPTIONS_HELP;
        }
        const option_row *row = NULL;
        for (size_t r = 0; r < count && row == NULL; ++r) {
            row = strcmp(argv[i], rows[r].name) == 0 ? &rows[r] : NULL;
        }
        if (row == NULL) {
            snprintf(message, message_size, "unknown option '%s'; --help lists the options",
                     argv[i]);
            return OPTIONS_ERROR;
        }
        const int consumed = parse_arguments(row, argc - i - 1, argv + i + 1);
        if (consumed < 0) {
            snprintf(message, message_size, "%s needs %s%s%s%s", row->name, row->argument,
                     i + 1 < argc ? ", not '" : "", i + 1 < argc ? argv[i + 1] : "",
                     i + 1 < argc ? "'" : "");
            return OPTIONS_ERROR;
        }
        i += 1 + consumed;
    }
    return OPTIONS_RUN;
}

void options_print_help(const option_row *rows, size_t count, const char *usage) {
    printf("%s\n", usage);
    for (size_t r = 0; r < count; ++r) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", rows[r].name, rows[r].argument);
        printf("  %-26s %s\n", left, rows[r].help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

int options_handle(const option_row *rows, size_t count, int argc, char **argv,
                   options_check *check, const void *options, const char *name, const char *what,
                   int rank, int *status) {
    char message[256];
    options_result result = options_parse(rows, count, argc, argv, message, sizeof message);
    if (result == OPTIONS_RUN && !check(options, message, sizeof message)) {
        result = OPTIONS_ERROR;
    }
    if (rank == 0 && result == OPTIONS_HELP) {
        char usage[256];
        snprintf(usage, sizeof usage, "%s\nUsage: %s [options]\n", what, name);
        options_print_help(rows, count, usage);
    } else if (rank == 0 && result == OPTIONS_ERROR) {
        fprintf(stderr, "%s: %s\n", name, message);
    }
    /* Another rank's failure could end the job before rank 0 has printed the message. */
    *status = result == OPTIONS_ERROR && rank == 0 ? 2 : 0;
    return result != OPTIONS_RUN;
}
