"""Draws the cases that causes are learned from, and learns from them: `make causes`."""
