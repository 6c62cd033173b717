"""What the configurations of NR base stations have in common."""

from __future__ import annotations

from math import log10

from airpath.deployed.draft import Draft, Found

SYMBOLS = 14
# TS 38.104 tables 5.2-1 and 5.2-2.
_TDD = frozenset({
    34, 38, 39, 40, 41, 46, 47, 48, 50, 51, 53, 77, 78, 79, 90, 96, 101, 102, 104,
    257, 258, 259, 260, 261, 262, 263,
})  # fmt: skip
_FIRST_OF_FR2 = 257

# TS 38.104 table 5.4.2.3-1: N_REF of the downlink, in the order of the bands' numbers.
_DOWNLINK = (
    (1, 422000, 434000), (2, 386000, 398000), (3, 361000, 376000), (5, 173800, 178800),
    (7, 524000, 538000), (8, 185000, 192000), (12, 145800, 149200), (13, 149200, 151200),
    (14, 151600, 153600), (18, 172000, 175000), (20, 158200, 164200), (25, 386000, 399000),
    (26, 171800, 178800), (28, 151600, 160600), (30, 470000, 472000), (34, 402000, 405000),
    (38, 514000, 524000), (39, 376000, 384000), (40, 460000, 480000), (41, 499200, 537999),
    (46, 743334, 795000), (48, 636667, 646666), (50, 286400, 303400), (53, 496700, 499000),
    (65, 422000, 440000), (66, 422000, 440000), (70, 399000, 404000), (71, 123400, 130400),
    (74, 295000, 303600), (77, 620000, 680000), (78, 620000, 653333), (79, 693334, 733333),
    (257, 2054166, 2104165), (258, 2016667, 2070832), (260, 2229166, 2279165),
    (261, 2070833, 2084999),
)  # fmt: skip

# TS 38.101-1 table 5.3.2-1 and TS 38.101-2 table 5.3.2-1: resource blocks of each channel.
_BLOCKS: dict[tuple[str, int], dict[int, int]] = {
    ("fr1", 15): {
        25: 5, 52: 10, 79: 15, 106: 20, 133: 25, 160: 30, 188: 35, 216: 40, 242: 45, 270: 50,
    },
    ("fr1", 30): {
        11: 5, 24: 10, 38: 15, 51: 20, 65: 25, 78: 30, 92: 35, 106: 40, 119: 45, 133: 50, 162: 60,
        189: 70, 217: 80, 245: 90, 273: 100,
    },
    ("fr1", 60): {
        11: 10, 18: 15, 24: 20, 31: 25, 38: 30, 44: 35, 51: 40, 58: 45, 65: 50, 79: 60, 93: 70,
        107: 80, 121: 90, 135: 100,
    },
    ("fr2", 60): {66: 50, 132: 100, 264: 200},
    ("fr2", 120): {32: 50, 66: 100, 132: 200, 264: 400},
}  # fmt: skip


def is_tdd(band: int) -> bool:
    """Whether a band is unpaired (TS 38.104 5.2)."""
    return band in _TDD


def frequency_range(band: int) -> str:
    """The range that a band is in (TS 38.104 5.1)."""
    return "fr2" if band >= _FIRST_OF_FR2 else "fr1"


def band_of(arfcn: int) -> int | None:
    """The first band whose downlink has this NR-ARFCN, or ``None``."""
    return next((band for band, low, high in _DOWNLINK if low <= arfcn <= high), None)


def carrier(range_: str, scs_khz: int, prbs: int) -> tuple[int, int] | None:
    """Bandwidth of the smallest channel with so many resource blocks, in MHz, and how many it has.

    ``None`` if no channel has that many.
    """
    found = _BLOCKS.get((range_, scs_khz), {})
    return next(((mhz, blocks) for blocks, mhz in found.items() if blocks >= prbs), None)


def blocks(range_: str, scs_khz: int, mhz: float) -> int | None:
    """Resource blocks of a channel, or ``None`` if there is no such channel."""
    found = _BLOCKS.get((range_, scs_khz), {})
    return next((blocks for blocks, each in found.items() if each == mhz), None)


def pattern(period: int, down: int, down_symbols: int, up: int, up_symbols: int) -> str:
    """A TDD pattern as airpath writes it (TS 38.213 11.1).

    Raises ``ValueError`` if the slots do not fill the period, or need more than one special slot.

    >>> pattern(10, 7, 6, 2, 4), pattern(5, 3, 10, 1, 2), pattern(4, 2, 0, 2, 0)
    ('DDDDDDDSUU 6:4:4', 'DDDSU 10:2:2', 'DDUU')
    """
    special = period - down - up
    if special < 0:
        raise ValueError(f"{down} downlink and {up} uplink slots do not fit into {period} slots")
    if not special:
        if down_symbols or up_symbols:
            raise ValueError(f"no slot of {period} is left for the symbols of a special slot")
        return "D" * down + "U" * up
    if special > 1 and (down_symbols or up_symbols):
        raise ValueError(f"{special} slots are neither downlink nor uplink; at most 1 can be")
    guard = SYMBOLS - down_symbols - up_symbols
    if guard < 0:
        raise ValueError(
            f"{down_symbols} downlink and {up_symbols} uplink symbols are more than {SYMBOLS}"
        )
    letters = "D" * down + "S" * special + "U" * up
    return f"{letters} {down_symbols}:{guard}:{up_symbols}"


def total_dbm(per_element_dbm: float, prbs: int) -> float:
    """Power in the whole carrier, from that of a resource element (12 subcarriers in each PRB)."""
    return round(per_element_dbm + 10 * log10(12 * prbs), 1)


def remark_power(draft: Draft, per_element: Found[float], prbs: int, why: str = "") -> None:
    """Say what the transmit power would be: a constant SINR does not depend on it."""
    total = total_dbm(per_element.value, prbs)
    origin = per_element.setting.place if per_element.setting else f"default of {draft.program}"
    draft.remarks.append(
        f"transmit_dbm = {total}  # {origin} {per_element.name}: {per_element.value} dBm in each "
        f"of {12 * prbs} subcarriers{why and f'; {why}'}"
    )
