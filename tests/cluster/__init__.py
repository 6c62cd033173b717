"""Campaigns on real schedulers: ``make cluster``."""
