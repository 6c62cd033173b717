"""Fits a study's parameters again, each to its own figure only.

A parameter of ``study.toml`` with a ``key`` is searched between ``low`` and ``high``. All start in
the middle, whatever the scenario says. In each round every parameter takes, from a few values, the
one whose figure is closest to the published value; each round searches a narrower range. Figures
that chose no parameter are not run. Prints one line for each parameter.
"""

from __future__ import annotations

import math
from typing import Annotated

import typer

from airpath.errors import InputError
from airpath.runs.summary import number
from airpath.study.bench import Bench, Request
from airpath.study.definition import Figure, Parameter, Study, load_study
from airpath_dev.harness import say

ROUNDS = (9, 7, 7, 5)
"""Number of values to try in each round."""


def main(
    name: Annotated[str, typer.Argument(metavar="STUDY", envvar="STUDY")] = "nr-bbr-cubic",
) -> None:
    """Choose a study's parameters again, each by its figure and by nothing else."""
    study = load_study(name)
    searched = [parameter for parameter in study.parameters if parameter.key]
    for parameter, value, obtained, figure in calibrate(study, searched):
        print(
            f"{parameter.of}: {parameter.key} = {value:.3g} (the study has {parameter.value}); "
            f"{figure.id} {obtained:.3g} of {figure.low:g} {figure.unit}"
        )


def calibrate(
    study: Study, parameters: list[Parameter]
) -> list[tuple[Parameter, float, float, Figure]]:
    """Return each parameter, its fitted value, its figure's result with all fits, its figure."""
    bench = Bench(study, (), study.repeat, None)
    leaves = {leaf.id: leaf for leaf in study.leaves}
    figures = [leaves[parameter.chosen_by] for parameter in parameters]
    for parameter in parameters:
        if parameter.low <= 0:
            raise InputError(f"{parameter.key}: low is {parameter.low:g}, but must be above 0")
    values = [math.sqrt(parameter.low * parameter.high) for parameter in parameters]
    widths = [math.log(parameter.high / parameter.low) / 2 for parameter in parameters]

    def request(index: int, value: float) -> Request:
        figure, sets = figures[index], []
        for other, parameter in enumerate(parameters):
            if figures[other].scenario == figure.scenario:
                chosen = value if other == index else values[other]
                sets.append(f"{parameter.key}={round_to(chosen, parameter)}")
        return Request(figure.scenario, (*figure.sets, *sets), figure.metrics[0])

    def obtained(index: int, value: float) -> float:
        asked = request(index, value)
        seeds = [number(each, asked.metric) for each in bench.values(asked)]
        return sum(seeds) / len(seeds) * figures[index].scale

    for points in ROUNDS:
        for index, (parameter, figure) in enumerate(zip(parameters, figures, strict=True)):
            steps = [2 * step / (points - 1) - 1 for step in range(points)]
            tried = [
                min(
                    max(values[index] * math.exp(widths[index] * step), parameter.low),
                    parameter.high,
                )
                for step in steps
            ]
            bench.obtain(request(index, value) for value in tried)
            target = figure.low or 0.0

            def miss(value: float, index: int = index, target: float = target) -> float:
                return abs(obtained(index, value) - target)

            values[index] = min(tried, key=miss)
            widths[index] *= 2 / (points - 1)
            say(f"{parameter.of}: {parameter.key} = {values[index]:.3g}")
    bench.obtain(request(index, value) for index, value in enumerate(values))
    return [
        (parameter, values[index], obtained(index, values[index]), figures[index])
        for index, parameter in enumerate(parameters)
    ]


def round_to(value: float, parameter: Parameter) -> str:
    """Return three significant digits, without a fraction if the upper bound is 1000 or more."""
    digits = float(f"{value:.3g}")
    return f"{digits:.0f}" if parameter.high >= 1000 else f"{digits:g}"
