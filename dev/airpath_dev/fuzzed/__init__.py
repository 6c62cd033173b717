"""Damaged files and directories, given to what reads them: `make fuzz-importers`, `fuzz-runs`."""
