// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Command line of the apps: a table of options, one parser, one help text.
#ifndef APPS_COMMON_OPTIONS_H
#define APPS_COMMON_OPTIONS_H

#include <stddef.h>

typedef enum option_kind {
    OPTION_FLAG,   // int, set to 1
    OPTION_SWITCH, // int, "on" or "off"
    OPTION_AUTO,   // int, "on" (1), "off" (0) or "auto" (-1)
    OPTION_INT,    // int[values], each >= 0
    OPTION_REAL,   // double, finite and > 0
    OPTION_TEXT    // const char *, points into argv
} option_kind;

typedef struct option_row {
    const char *name; // with its dashes
    option_kind kind;
    int values; // OPTION_INT only: how many numbers it takes ...
    int or_one; // ... and whether a single one stands for all of them
    void *into;
    const char *argument; // for the help
    const char *help;
} option_row;

typedef enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_ERROR } options_result;

// Stores the options of argv. On OPTIONS_ERROR, `message` has the error and the option.
options_result options_parse(const option_row *rows, size_t count, int argc, char **argv,
                             char *message, size_t message_size);

void options_print_help(const option_row *rows, size_t count, const char *usage);

// Checks the options of a program together; returns 0 with a message if they are inconsistent.
typedef int options_check(const void *options, char *message, size_t message_size);
// Parses the options of an app, checks `options`, and prints help and errors on rank 0. Returns 0
// to run; otherwise *status is the exit status of this rank: of an error, rank 0 alone has one.
int options_handle(const option_row *rows, size_t count, int argc, char **argv,
                   options_check *check, const void *options, const char *name, const char *what,
                   int rank, int *status);

#endif
