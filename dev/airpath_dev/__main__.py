"""``airpath-dev COMMAND`` runs one of the programs in this package.

    PYTHONPATH=dev .venv/bin/python -m airpath_dev COMMAND --help
    make COMMAND ARGS='...'

Exit codes: 0, the check passed; 1, something is wrong; 2, bad use; 3, not checked, because
something is missing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

PLAIN = {
    "outcomes": "outcomes",
    "profiled": "profiled",
    "fuzz-coverage": "coverage",
}
"""Commands that run without airpath and its packages, which may not be installed yet."""

COMMANDS = {
    "audit": "audit",
    "blocks": "blocks",
    "calibrate": "calibrate",
    "captures-compared": "compared.command",
    "captures-kernel": "recorded.kernel",
    "captures-recorded": "recorded.command",
    "causes": "causes.command",
    "causes-captured": "causes.captured",
    "causes-emulated": "causes.emulated",
    "causes-field": "causes.field",
    "cluster": "cluster.command",
    "cost": "cost",
    "cures": "pages.cures",
    "deployed": "deployed",
    "docs": "pages.website",
    "edaf": "edaf",
    "findings-captures": "planted.command",
    "findings-emulated": "planted.emulated",
    "fit": "fitted.command",
    "fuzz-campaigns": "fuzzed.campaigns",
    "fuzz-diagnosed": "fuzzed.diagnosed",
    "fuzz-importers": "fuzzed.importers",
    "fuzz-runs": "fuzzed.runs",
    "hostile": "hostile.command",
    "hystart": "hystart",
    "intervals": "intervals",
    "licences": "licences",
    "machines": "machines",
    "mahimahi": "mahimahi",
    "measured": "measured",
    "page-quic-acks": "pages.quic_acks",
    "placed": "placed",
    "posted": "posted",
    "private": "pages.private",
    "referee": "referee.command",
    "studies-emulated": "private",
    "study-candidates": "candidates",
    "study-first-hop": "first_hop",
    "study-order": "order",
    "study-search": "search",
    "tuned": "tuned",
    "twin": "twin.command",
    "twin-kept": "twin.kept",
    "twin-quic": "twin.quic",
    "twin-random": "twin.drawn",
    "which-cc": "pages.which_cc",
    **{f"page-{name}": f"pages.{name}"
       for name in ("ablation", "explorer", "studies", "traces", "twins", "uplink")},
    "bench": "bench.steps",
    "bench-speed": "bench.speed",
    "hashes": "bench.hashes",
    "instructions": "bench.instructions",
    "soak": "bench.soak",
    **{f"bench-{name.replace('_', '-')}": f"bench.{name}"
       for name in ("campaign", "capture", "capture_page", "emulation", "emulation_profile",
                    "environment", "explore", "findings", "report")},
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Run a command; without one, list them."""
    name = words[0] if words else "--help"
    module = {**PLAIN, **COMMANDS}.get(name)
    if module is None:
        lines = [f"  {each:20} {_first_line(of)}" for each, of in (PLAIN | COMMANDS).items()]
        print(f"{__doc__}\n" + "\n".join(sorted(lines)))
        return 0 if name == "--help" else 2
    sys.argv[0] = name
    command = import_module(f"airpath_dev.{module}").main
    if name in PLAIN:
        code: int = command(words[1:])
        return code
    from airpath_dev.harness import run

    return run(command, words[1:])


def _first_line(module: str) -> str:
    file = Path(__file__).parent / f"{module.replace('.', '/')}.py"
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
