"""Checks whether the licences of airpath's dependencies are allowed.

The check needs no network. It reads Rust's dependencies from `cargo metadata`, Python's from the
installed packages, and the explorer's from its lock file. deny.toml lists what is allowed; `make
audit` gives that file to cargo-deny. The exit code is 1 if a licence is not in the list, a crate
is banned or has two versions, or a source is unknown.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing
from packaging.requirements import Requirement

from airpath_dev import ROOT

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
"""Classifiers of Python packages from before SPDX expressions (PEP 639), and their expressions."""
FUZZ = {"libfuzzer-sys": "(MIT OR Apache-2.0) AND NCSA"}
"""Dependencies of the fuzz targets alone, which are not shipped. Their licences are listed here,
because cargo would have to download the crates to read them."""
NOT_SHIPPED = {"pycrate": "LGPL v2.1+"}
"""Python packages that airpath imports where a user installed them, and their licences, which
deny.toml does not allow in what is shipped (docs/adr/0140)."""
BPF = "// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only"
BPF_STRING = 'char LICENSE[] SEC("license") = "Dual MIT/GPL";'

_LICENSING = get_spdx_licensing()
Complaints = Iterator[str]


def main() -> int:
    """Check whether all that airpath depends on may be shipped with it."""
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    crates = cargo_metadata()
    packages = {**dict(python_packages("airpath")), **dict(python_packages("airpath", "core"))}
    npm = json.loads((ROOT / "explorer/package-lock.json").read_text(encoding="utf-8"))
    complaints = [
        *crate_complaints(crates, rules),
        *package_complaints(packages, rules["licenses"]["allow"]),
        *npm_complaints(npm, rules["licenses"]["allow"]),
        *fuzz_complaints(tomllib.loads((ROOT / "fuzz/Cargo.toml").read_text(encoding="utf-8"))),
        *bpf_complaints(sorted((ROOT / "crates/bpf/kernel").iterdir())),
    ]
    for complaint in complaints:
        print(f"error: {complaint}", file=sys.stderr)
    if not complaints:
        shipped = sum(not package.get("dev") for package in npm["packages"].values()) - 1
        print(f"licences: {len(crates['packages'])} crates, {len(packages)} Python packages and "
              f"{shipped} npm packages, as deny.toml allows")  # fmt: skip
    return 1 if complaints else 0


def cargo_metadata() -> dict[str, Any]:
    """Return cargo's metadata for this platform, without a download."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True, cwd=ROOT)
    host = next(line.split()[1] for line in version.stdout.splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--locked", "--offline", "--all-features", "--format-version=1"]
    done = subprocess.run(
        [*command, f"--filter-platform={host}"], stdout=subprocess.PIPE, check=True, cwd=ROOT
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def is_allowed(expression: str, allowed: Iterable[str]) -> bool:
    """Whether the list satisfies an SPDX expression; unknown names never do."""
    listed = {*allowed}

    def holds(node: Any) -> bool:
        # A licence, or a licence WITH an exception, must be in the list with the exact text.
        if not isinstance(node, _LICENSING.AND | _LICENSING.OR):
            return node.render() in listed
        parts = [holds(part) for part in node.args]
        return all(parts) if isinstance(node, _LICENSING.AND) else any(parts)

    try:
        # Older crates write OR as a slash.
        return holds(_LICENSING.parse(expression.replace("/", " OR "), simple=False))
    except (ExpressionError, AttributeError):
        return False


def crate_complaints(crates: dict[str, Any], rules: dict[str, Any]) -> Complaints:
    """Return complaints about Rust's dependencies."""
    allowed, bans = rules["licenses"]["allow"], rules["bans"]
    versions: dict[str, list[str]] = defaultdict(list)
    for package in crates["packages"]:
        who = f"crate {package['name']} {package['version']}"
        versions[package["name"]].append(package["version"])
        if not package["license"]:
            yield f"{who} names no licence"
        elif not is_allowed(package["license"], allowed):
            yield f"{who} is {package['license']}, which deny.toml does not allow"
        if package["source"] not in {None, CRATES_IO}:
            yield f"{who} comes from {package['source']}, not from crates.io"
        if package["source"] is None:
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and dependency.get("path") is None:
                    yield f"{who} takes any version of {dependency['name']}"
    skipped = {entry["crate"].partition("@")[0] for entry in bans["skip"]}
    for name, found in sorted(versions.items()):
        if len(found) > 1 and name not in skipped:
            yield f"crate {name} is there {len(found)} times: {', '.join(sorted(found))}"
    yield from ban_complaints(crates, bans["deny"])


def ban_complaints(crates: dict[str, Any], banned: list[dict[str, Any]]) -> Complaints:
    """Return complaints about banned crates whose dependents are not allowed to use them."""
    names = {package["id"]: package["name"] for package in crates["packages"]}
    rules = {entry["crate"]: entry for entry in banned}
    for node in crates["resolve"]["nodes"]:
        for dependency in node["deps"]:
            rule = rules.get(names[dependency["pkg"]])
            user = names[node["id"]]
            if rule is not None and user not in rule.get("wrappers", ()):
                yield f"crate {rule['crate']} is banned ({rule['reason']}); {user} depends on it"


def python_packages(name: str, extra: str = "metrics") -> Iterator[tuple[str, str]]:
    """Yield an installed package and all its dependencies, with their licences."""
    waiting, seen = [(name, extra)], set()
    while waiting:
        name, extra = waiting.pop()
        plain = re.sub(r"[-_.]+", "-", name).lower()
        if plain in seen:
            continue
        seen.add(plain)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            yield plain, "not installed"
            continue
        yield plain, licence_of(found.metadata)
        needed = [Requirement(line) for line in found.requires or []]
        waiting += [
            (one.name, "")
            for one in needed
            if one.marker is None or one.marker.evaluate({"extra": extra})
        ]


def licence_of(metadata: Any) -> str:
    """Return a package's SPDX expression, from whichever metadata field has one."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    known = [CLASSIFIERS[one] for one in metadata.get_all("Classifier") or [] if one in CLASSIFIERS]
    said = (metadata.get("License") or "").strip()
    return " AND ".join(known) or said.partition("\n")[0] or "nothing"


def package_complaints(packages: dict[str, str], allowed: list[str]) -> Complaints:
    """Return complaints about Python's dependencies."""
    for name, licence in sorted(packages.items()):
        if NOT_SHIPPED.get(name) != licence and not is_allowed(licence, allowed):
            yield f"Python package {name}: {licence}, which deny.toml does not allow"


def npm_complaints(lock: dict[str, Any], allowed: list[str]) -> Complaints:
    """Return complaints about packages in the explorer's pages; its build tools are not shipped."""
    for place, package in sorted(lock["packages"].items()):
        if place == "" or package.get("dev"):
            continue
        name = place.rpartition("node_modules/")[2]
        licence = package.get("license", "")
        if not is_allowed(licence, allowed):
            yield f"npm package {name}: {licence or 'no licence'}, which deny.toml does not allow"
        if "integrity" not in package:
            yield f"npm package {name}: the lock file does not say what it has to be"


def fuzz_complaints(manifest: dict[str, Any]) -> Complaints:
    """Return complaints about dependencies of fuzz targets: not in `FUZZ`, or no exact version."""
    for name, dependency in manifest["dependencies"].items():
        if isinstance(dependency, dict) and str(dependency.get("path", "")).startswith(
            "../crates/"
        ):
            continue
        if name not in FUZZ:
            yield f"crate {name} is taken by fuzz/Cargo.toml; allowed are {', '.join(sorted(FUZZ))}"
        elif not (isinstance(dependency, str) and dependency.startswith("=")):
            yield f"fuzz/Cargo.toml takes other versions of {name} too: write `=` before it"


def bpf_complaints(sources: Iterable[Path]) -> Complaints:
    """Return complaints about BPF sources without the SPDX line or the kernel's licence string."""
    for source in sources:
        text = source.read_text(encoding="utf-8")
        first = text.partition("\n")[0].replace("/* ", "// ").removesuffix(" */")
        if first != BPF:
            yield f"{source.name} does not begin with `{BPF}`"
        if source.name.endswith(".bpf.c") and BPF_STRING not in text:
            yield f"{source.name} does not tell the kernel `Dual MIT/GPL`"
