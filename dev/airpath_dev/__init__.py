"""The programs that develop airpath: measurements, checks and pages. Not shipped."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
