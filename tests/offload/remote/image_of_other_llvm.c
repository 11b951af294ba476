/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A library that is linked with the libomptarget of an LLVM that DiOMP does not know. */
int of_another_version(void);
int uses_it(void);
int uses_it(void) { return of_another_version(); }
