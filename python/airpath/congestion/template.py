"""A crate to start from: a congestion control of your own in Rust."""

from __future__ import annotations

import re
from pathlib import Path

from airpath.errors import AirpathError, InputError, reason

MANIFEST = """\
[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[lib]
name = "{crate}"
crate-type = ["cdylib"]

# A workspace of its own, also inside another one.
[workspace]
"""

ALGORITHM = """\
//! A congestion control for airpath. It starts as Reno (RFC 5681).

mod abi;

use abi::{Ack, CongestionControl, Loss, SlowStartExit, Start, Window};

crate::congestion_control!(Algorithm);

/// The state of one connection.
struct Algorithm;

impl CongestionControl for Algorithm {
    const NAME: &'static std::ffi::CStr = c"NAME";

    fn start(_start: &Start) -> Self {
        Self
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Option<SlowStartExit> {
        if ack.cwnd_limited {
            let acked = f64::from(ack.acked_segments);
            let slow_start = window.cwnd_segments < window.ssthresh_segments;
            window.cwnd_segments += if slow_start { acked } else { acked / window.cwnd_segments };
        }
        None
    }

    fn on_loss(&mut self, loss: &Loss, window: &mut Window) {
        window.ssthresh_segments = (f64::from(loss.flight_segments) / 2.0).max(2.0);
    }
}
"""


def write(directory: Path) -> Path:
    """Create the crate in a new or empty directory, and return where its library will be."""
    from airpath import _core

    name = directory.name
    if re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", name) is None:
        raise InputError(
            f"'{name}' is not the name of a crate: 1 to 63 lower-case letters, digits, - and _, "
            "a letter first"
        )
    crate = name.replace("-", "_")
    files = {
        "Cargo.toml": MANIFEST.format(name=name, crate=crate),
        "src/lib.rs": ALGORITHM.replace('c"NAME"', f'c"{name}"'),
        "src/abi.rs": _core.congestion_interface(),
        ".gitignore": "/target\n",
    }
    try:
        if directory.exists() and any(directory.iterdir()):
            raise InputError(f"{directory} is not empty")
        for file, text in files.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise AirpathError(f"cannot write {directory}: {reason(error)}") from None
    return directory / f"target/release/lib{crate}.so"
