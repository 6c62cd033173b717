"""Scenarios are drawn, captured and fitted: what was drawn is to be found again."""
