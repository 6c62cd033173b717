"""Findings: what held a run back, by taking it away and running again; advice that was tried."""

from airpath.diagnose.explain import BUDGETS, Budget, Explain, Progress, add, check

__all__ = ["BUDGETS", "Budget", "Explain", "Progress", "add", "check"]
