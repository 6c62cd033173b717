"""Captures against the simulator's own records: `make captures-recorded`."""
