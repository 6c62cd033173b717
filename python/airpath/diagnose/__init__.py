"""Findings: what held a run back, with evidence, advice and the gain from removing the cause."""

from airpath.diagnose.facts import Finding
from airpath.diagnose.rules import combine, diagnose

__all__ = ["Finding", "combine", "diagnose"]
