#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: starts a rank's program so that NCCL takes each rank to be on a host of its own.
export NCCL_HOSTID="rank-${DIOMP_RANK:?}"
exec "$@"
