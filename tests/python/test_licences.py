"""Licences and bans are checked without a network, by the file that cargo-deny reads."""

from __future__ import annotations

from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from airpath.base.toml import read_toml
from airpath_dev import ROOT, licences

RULES = read_toml(ROOT / "deny.toml")
ALLOWED = RULES["licenses"]["allow"]


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        # A choice is ours.
        ("MIT OR GPL-3.0-or-later", True),
        ("LGPL-2.1-only OR BSD-2-Clause", True),
        ("GPL-3.0-only", False),
        ("LGPL-2.1-or-later", False),
        ("MIT AND LGPL-2.1-only", False),
        ("(MIT OR Apache-2.0) AND (GPL-2.0-only OR LGPL-2.1-only)", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("MPL-2.0", False),
        ("AGPL-3.0-only", False),
        ("MIT OR", False),
        ("Do what you like", False),
        ("", False),
    ],
)
def test_an_expression_is_allowed_if_a_choice_is(expression: str, allowed: bool) -> None:
    assert licences.is_allowed(expression, ALLOWED) == allowed


def _crate(name: str, version: str = "1.0.0", **changes: Any) -> dict[str, Any]:
    source = "registry+https://github.com/rust-lang/crates.io-index"
    fields = {"license": "MIT", "source": source, "dependencies": []}
    return {"id": f"{name} {version}", "name": name, "version": version, **fields, **changes}


def _metadata(*crates: dict[str, Any], uses: dict[str, str] | None = None) -> dict[str, Any]:
    ids = {crate["name"]: crate["id"] for crate in crates}
    nodes = [{"id": ids[user], "deps": [{"pkg": ids[used]}]} for user, used in (uses or {}).items()]
    return {"packages": list(crates), "resolve": {"nodes": nodes}}


@pytest.mark.parametrize(
    ("metadata", "complaint"),
    [
        (_metadata(_crate("a"), _crate("b", license="MIT OR GPL-2.0-only")), None),
        (_metadata(_crate("a", license="LGPL-3.0-only")), "crate a 1.0.0 is LGPL-3.0-only, which"),
        (_metadata(_crate("a", license=None)), "crate a 1.0.0 names no licence"),
        (
            _metadata(_crate("a"), _crate("a", "2.0.0")),
            "crate a is there 2 times: 1.0.0, 2.0.0",
        ),
        (_metadata(_crate("syn"), _crate("syn", "2.0.0")), None),
        (_metadata(_crate("a", source="git+https://example.org/a")), "comes from git+https"),
        (
            _metadata(_crate("a", source=None, dependencies=[{"name": "b", "req": "*"}])),
            "crate a 1.0.0 takes any version of b",
        ),
        (
            _metadata(_crate("ours"), _crate("tokio"), uses={"ours": "tokio"}),
            "crate tokio is banned (one thread and its clock decide when packets leave); ours",
        ),
        (_metadata(_crate("proptest"), _crate("rand"), uses={"proptest": "rand"}), None),
        (_metadata(_crate("ours"), _crate("rand"), uses={"ours": "rand"}), "crate rand is banned"),
    ],
)
def test_crates(metadata: dict[str, Any], complaint: str | None) -> None:
    complaints = list(licences.crate_complaints(metadata, RULES))
    assert len(complaints) == (complaint is not None)
    assert all(str(complaint) in said for said in complaints)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"License-Expression": "MIT AND Zlib", "License": "see below"}, "MIT AND Zlib"),
        ({"Classifier": "License :: OSI Approved :: MIT License", "License": "Long"}, "MIT"),
        ({"License": "BSD-3-Clause\nmore"}, "BSD-3-Clause"),
        ({"Classifier": "License :: OSI Approved :: GNU General Public License"}, "nothing"),
    ],
)
def test_python_packages_say_it_in_one_of_three_places(
    fields: dict[str, str], expected: str
) -> None:
    metadata = Message()
    for name, value in fields.items():
        metadata[name] = value
    assert licences.licence_of(metadata) == expected
    if expected == "nothing":
        (complaint,) = licences.package_complaints({"x": expected}, ALLOWED)
        assert "Python package x: nothing" in complaint


def test_what_is_missing_is_no_package_that_is_allowed() -> None:
    (found,) = licences.python_packages("no-such-package-of-airpath")
    assert found == ("no-such-package-of-airpath", "not installed")
    assert list(licences.package_complaints(dict([found]), ALLOWED))


def test_an_extra_is_allowed_with_the_licence_that_was_looked_at() -> None:
    known = licences.NOT_SHIPPED["pycrate"]
    assert not list(licences.package_complaints({"pycrate": known}, ALLOWED))
    assert list(licences.package_complaints({"pycrate": "GPL-3.0-only"}, ALLOWED))
    assert list(licences.package_complaints({"other": known}, ALLOWED))


def test_bpf_programs_tell_the_kernel_what_their_sources_say(tmp_path: Path) -> None:
    sources = sorted((ROOT / "crates/bpf/kernel").iterdir())
    assert list(licences.bpf_complaints(sources)) == []
    good = (ROOT / "crates/bpf/kernel/observer.bpf.c").read_text(encoding="utf-8")
    changed = tmp_path / "x.bpf.c"
    for old, new in (("Dual MIT/GPL", "GPL"), (" OR GPL-2.0-only", "")):
        changed.write_text(good.replace(old, new))
        assert len(list(licences.bpf_complaints([changed]))) == 1


def test_everything_that_is_here_is_allowed() -> None:
    assert licences.main() == 0


@pytest.mark.parametrize(
    ("dependency", "said"),
    [
        ({"airpath-emu": {"path": "../crates/emu"}}, []),
        ({"libfuzzer-sys": "=0.4.13"}, []),
        ({"libfuzzer-sys": "0.4"}, ["takes other versions of libfuzzer-sys too"]),
        ({"rand": "=0.9.0"}, ["crate rand is taken by fuzz/Cargo.toml"]),
        ({"toml": {"path": "../../elsewhere"}}, ["crate toml is taken by fuzz/Cargo.toml"]),
    ],
)
def test_fuzz_targets_take_libfuzzer_and_no_more(
    dependency: dict[str, Any], said: list[str]
) -> None:
    complaints = list(licences.fuzz_complaints({"dependencies": dependency}))
    assert len(complaints) == len(said)
    assert all(part in one for part, one in zip(said, complaints, strict=True))


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ({"license": "MIT", "integrity": "x"}, []),
        ({"license": "MPL-2.0", "integrity": "x", "dev": True}, []),
        ({"license": "MPL-2.0", "integrity": "x"}, ["npm package @a/b: MPL-2.0, which deny"]),
        ({"integrity": "x"}, ["npm package @a/b: no licence, which deny"]),
        ({"license": "MIT"}, ["npm package @a/b: the lock file does not say"]),
    ],
)
def test_what_pages_contain_is_checked_and_their_tools_are_not(
    package: dict[str, Any], said: list[str]
) -> None:
    lock = {"packages": {"": {}, "node_modules/@a/b": package}}
    found = list(licences.npm_complaints(lock, ALLOWED))
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True))
