# SPDX-License-Identifier: Apache-2.0
"""Which failures of a program with Pumice are ExecuTorch's own: a failure may not become a skip by another failure."""

from __future__ import annotations

from executorch.backends.test.suite.reporting import TestCaseSummary, TestResult

MISSING_KERNEL = "error: 0x14"  # of ExecuTorch's runtime: Error::OperatorMissing
AFTER_LOWERING = (TestResult.PTE_LOAD_FAIL, TestResult.PTE_RUN_FAIL, TestResult.OUTPUT_MISMATCH_FAIL)


def excused(ours: TestCaseSummary, alone: TestCaseSummary, delegated: bool) -> bool:
    """Whether a failure is ExecuTorch's own, as `alone`, without a backend, shows.

    A program without a delegate, which is the same program, fails in the same stage; one with a delegate lacks the same
    kernel. What fails before there is a program may be the partitioner's fault: the errors must be the same.
    """
    same = type(ours.error) is type(alone.error) and str(ours.error) == str(alone.error)
    if delegated:
        return same and MISSING_KERNEL in str(ours.error)
    return ours.result == alone.result and (same or ours.result in AFTER_LOWERING)
