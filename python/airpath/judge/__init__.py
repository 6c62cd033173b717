"""Judge the kernel's congestion controls over a fixed set of emulated paths."""

from airpath.judge.document import JudgeDocument, document
from airpath.judge.trials import Judgement, judge
from airpath.judge.verdicts import faults, rows

__all__ = ["JudgeDocument", "Judgement", "document", "faults", "judge", "rows"]
