"""A capture as a scenario: what path and endpoints would have made these packets.

``observed.py`` has the packets of one flow, ``path.py`` and ``endpoints.py`` what they tell,
``candidate.py`` writes that as a scenario, and ``fit.py`` runs candidates and compares them with
the capture by the same meters.
"""
