"""Programs for developing airpath: measurements, checks and pages. They are not shipped."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
