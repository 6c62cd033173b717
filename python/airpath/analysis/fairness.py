"""How evenly flows share."""

from collections.abc import Iterable


def jain_index(shares: Iterable[float]) -> float:
    """Jain's fairness index: 1 when all shares are equal, 1/n when one flow has everything.

    Jain, Chiu, Hawe: DEC-TR-301 (1984). Any unit will do; shares must not be negative.
    """
    values = list(shares)
    if not values:
        raise ValueError("no shares")
    if any(value < 0 for value in values):
        raise ValueError("a share is negative")
    squares = sum(value * value for value in values)
    if squares == 0:
        return 1.0
    total = sum(values)
    return total * total / (len(values) * squares)
