// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled only for the precompiled headers that the unit tests share (DiompTests.cmake).
