"""A capture as a scenario: which path and endpoints would have produced these packets.

``observed.py`` has the packets of one flow, ``path.py`` and ``endpoints.py`` derive path and
endpoints from them, ``candidate.py`` writes these as a scenario, and ``fit.py`` runs candidates
and compares them with the capture by the same meters.
"""
