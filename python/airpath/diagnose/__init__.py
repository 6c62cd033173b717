"""Findings: what held a run back, by taking it away and running again; advice that was tried."""

from airpath.diagnose.explain import BUDGETS, Progress, add, check

__all__ = ["BUDGETS", "Progress", "add", "check"]
