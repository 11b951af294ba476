/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Data of a library that the test opens and closes. */
long library_data[20000] = {1};
long library_zeros[10000];
