"""Importers of what tools print, given files that are damaged: `make fuzz-importers`."""
