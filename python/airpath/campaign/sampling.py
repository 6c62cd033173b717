"""The points of a campaign: every combination, lists beside each other, or drawn ones.

What is drawn depends on the definition alone. Random points come from numpy's PCG64; Latin
hypercubes and Sobol's sequence from scipy, Saltelli's scheme from SALib.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from airpath.campaign.definition import Axis, Definition, Scalar, set_texts
from airpath.errors import AirpathError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Point = tuple[tuple[Scalar, ...], tuple[str, ...]]
"""What each axis is there, as its column has it, and as settings."""


def size(definition: Definition) -> int:
    """Number of points for each base scenario."""
    if definition.sampling == "grid":
        return math.prod(len(axis.choices) for axis in definition.axes)
    if definition.sampling == "list":
        return len(definition.axes[0].choices) if definition.axes else 1
    if definition.sampling == "saltelli":
        return definition.samples * (2 * len(definition.axes) + 2)
    return definition.samples


def points(definition: Definition) -> Iterator[Point]:
    """The points in the campaign's order; in a grid the last axis varies first."""
    axes = definition.axes
    if definition.sampling == "grid":
        for chosen in itertools.product(*(axis.choices for axis in axes)):
            yield (
                tuple(choice.label for choice in chosen),
                tuple(text for choice in chosen for text in choice.sets),
            )
    elif definition.sampling == "list":
        for chosen in zip(*(axis.choices for axis in axes), strict=True) if axes else [()]:
            yield (
                tuple(choice.label for choice in chosen),
                tuple(text for choice in chosen for text in choice.sets),
            )
    else:
        for row in _unit(definition):
            located = [_located(axis, float(at)) for axis, at in zip(axes, row, strict=True)]
            yield (
                tuple(value for value, _ in located),
                tuple(text for _, texts in located for text in texts),
            )


def _unit(definition: Definition) -> npt.NDArray[np.float64]:
    """Points of the unit cube."""
    import numpy as np

    dimensions, number = len(definition.axes), definition.samples
    seed = definition.sampling_seed
    if definition.sampling == "random":
        drawn: npt.NDArray[np.float64] = np.random.default_rng(seed).random((number, dimensions))
        return drawn
    if definition.sampling == "saltelli":
        return saltelli(dimensions, number, seed)
    try:
        from scipy.stats import qmc
    except ModuleNotFoundError:
        raise missing("scipy", f'sampling "{definition.sampling}"') from None
    if definition.sampling == "latin-hypercube":
        cube = qmc.LatinHypercube(dimensions, seed=seed).random(number)
    else:
        cube = qmc.Sobol(dimensions, seed=seed).random(number)
    return np.asarray(cube, dtype=np.float64)


def saltelli(dimensions: int, number: int, seed: int) -> npt.NDArray[np.float64]:
    """Saltelli's scheme with second-order indices: ``number × (2 × dimensions + 2)`` points."""
    import numpy as np

    try:
        from SALib.sample import sobol
    except ModuleNotFoundError:
        raise missing("SALib", 'sampling "saltelli"') from None
    made = sobol.sample(problem(dimensions), number, calc_second_order=True, seed=seed)
    return np.asarray(made, dtype=np.float64)


def problem(dimensions: int) -> dict[str, object]:
    """The unit cube as SALib describes one."""
    names = [f"x{index}" for index in range(dimensions)]
    return {"num_vars": dimensions, "names": names, "bounds": [[0.0, 1.0]] * dimensions}


def missing(package: str, what: str) -> AirpathError:
    """An optional package that is wanted and not there."""
    extras = {
        "distributed": "cluster",
        "cryptography": "cluster",
        "dask_jobqueue": "slurm",
        "s3fs": "s3",
        "fsspec": "s3",
    }
    extra = extras.get(package, "campaign")
    return InputError(
        f"{what} needs {package}, which is not installed: pip install 'airpath[{extra}]'"
    )


def _located(axis: Axis, at: float) -> tuple[Scalar, tuple[str, ...]]:
    """What an axis is at a place from 0 to 1."""
    if not axis.ranged:
        choice = axis.choices[min(int(at * len(axis.choices)), len(axis.choices) - 1)]
        return choice.label, choice.sets
    if axis.log:
        value = axis.low * (axis.high / axis.low) ** at
    else:
        value = axis.low + (axis.high - axis.low) * at
    # Seven digits: what differs beyond them is no other experiment, and reads badly.
    value = float(f"{value:.7g}")
    exact: Scalar = round(value) if axis.whole else value
    return exact, tuple(set_texts(axis.keys, exact))
