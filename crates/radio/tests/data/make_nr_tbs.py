"""Writes nr_tbs.txt: random inputs of TS 38.214 5.1.3.2 with the sizes that py3gpp gives them.

    pip install py3gpp==0.6.0
    python make_nr_tbs.py

The inputs are drawn from a fixed seed, so a second run writes the same bytes.
"""

import random
from importlib.metadata import version
from pathlib import Path

from py3gpp.nrTBS import nrTBS

INPUTS = 11_000
MODULATIONS = {2: "QPSK", 4: "16QAM", 6: "64QAM", 8: "256QAM"}

# R x 2048 by Q_m, all rows of TS 38.214 tables 5.1.3.1-1 to -3
RATES = {
    2: [30, 40, 50, 64, 78, 99, 120, 157, 193, 251, 308, 379, 449, 526, 602, 679],
    4: [340, 378, 434, 490, 553, 616, 658],
    6: [438, 466, 517, 567, 616, 666, 719, 772, 822, 873, 910, 948],
    8: [682.5, 711, 754, 797, 841, 885, 916.5, 948],
}

HEADER = f"""\
# TS 38.214 5.1.3.2: sizes by py3gpp {version("py3gpp")} (nrTBS), written by make_nr_tbs.py
# PRBs, symbols, DM-RS elements per PRB, overhead elements per PRB, Q_m, R x 2048, layers, bits
"""


def main() -> None:
    """Draw the inputs, ask py3gpp, write the file beside this one."""
    draw = random.Random("TS 38.214 5.1.3.2")
    lines = []
    while len(lines) < INPUTS:
        # Half of the inputs small, so that the branch of N_info <= 3824 is well covered.
        prbs = draw.randint(1, draw.choice([12, 275]))
        symbols = draw.randint(2, 14)
        dmrs = draw.choice([6, 12, 18, 24, 36, 48])
        overhead = draw.choice([0, 6, 12, 18])
        if 12 * symbols - dmrs - overhead <= 0:
            continue
        order = draw.choice(list(MODULATIONS))
        rate = round(2 * draw.choice(RATES[order]))
        layers = draw.randint(1, 4)
        bits = nrTBS(
            MODULATIONS[order], layers, prbs, 12 * symbols - dmrs, rate / 2048, overhead
        )
        lines.append(f"{prbs} {symbols} {dmrs} {overhead} {order} {rate} {layers} {bits}\n")
    Path(__file__).with_name("nr_tbs.txt").write_text(HEADER + "".join(lines))


if __name__ == "__main__":
    main()
