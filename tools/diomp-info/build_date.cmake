# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes the header OUTPUT with today's date, or that of SOURCE_DATE_EPOCH for builds that can be repeated bit by bit. Run
# when the library is linked.
string(TIMESTAMP date "%Y-%m-%d" UTC)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#pragma once\n#define DIOMP_BUILD_DATE \"${date}\"\n")
