"""Policies that were learned, as congestion control: a small network with weights of numpy.

An environment of ``airpath.gym`` and a ``Policy`` see the same observation and act in the same way,
so a policy that learned in an environment behaves alike in ``airpath.run``:

>>> import airpath, numpy as np
>>> from airpath.congestion.policy import OBSERVATION, Policy
>>> hold = Policy([(np.zeros((1, len(OBSERVATION))), np.zeros(1))])
>>> run = airpath.run("wire", congestion={"flow.0": hold}, set={"run.duration_s": 1})
>>> set(run.samples["cwnd_segments"])
{10}
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from airpath.congestion import Congestion
from airpath.errors import AirpathError, InputError, reason

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from airpath.congestion import Interval, Window

Vector: TypeAlias = "NDArray[np.float32]"
Activation: TypeAlias = Literal["tanh", "relu"]


class Element(NamedTuple):
    """An element of an observation or an action."""

    name: str
    """What it is, with its unit."""
    low: float
    high: float


OBSERVATION = (
    Element("log2_delivered_mbps", -14.0, 14.0),
    Element("log2_rtt_ms", -4.0, 18.0),
    Element("log2_srtt_over_min_rtt", 0.0, 14.0),
    Element("log2_bdp_over_cwnd", -14.0, 14.0),
    Element("log2_cwnd_segments", 0.0, 24.0),
    Element("in_flight_over_cwnd", 0.0, 4.0),
    Element("lost_fraction", 0.0, 1.0),
    Element("timed_out", 0.0, 1.0),
)
"""What an agent sees of an interval. ``log2_`` is the binary logarithm of what follows; values
beyond a bound are set to it.

``rtt``: the smallest RTT of the interval. ``bdp``: what was delivered in a second, times the
smallest RTT of the connection, in segments: cwnd that the path can use without a queue.
``lost_fraction``: segments marked lost, of those and the ones delivered. ``timed_out``: 1 after a
retransmission time-out.
"""

ACTION = (Element("log2_cwnd_change", -1.0, 1.0),)
"""What an agent does: cwnd is multiplied by 2 to this power, so it at most halves or doubles."""

LARGEST_CWND_SEGMENTS = 1e7
"""Largest cwnd that a congestion control may set."""

_NORMALISED_LIMIT = 10.0
"""Bound of a normalised observation, as in ``VecNormalize`` of Stable-Baselines3."""
_LARGEST_FILE = 1 << 26


def observe(interval: Interval, cwnd_segments: float) -> Vector:
    """Observation of an interval that ended with this cwnd, in the order of ``OBSERVATION``."""
    mbps = interval.delivered_bps / 1e6
    rtt_ms = (interval.rtt_ns or interval.srtt_ns) / 1e6
    min_rtt_ms = interval.min_rtt_ns / 1e6
    bits = 8.0 * interval.mss_bytes
    bdp = mbps * 1e3 * min_rtt_ms / bits if bits else 0.0
    delivered, lost = interval.delivered_segments, interval.lost_segments
    values = (
        _log2(mbps),
        _log2(rtt_ms),
        _log2(interval.srtt_ns / 1e6 / min_rtt_ms) if min_rtt_ms else 0.0,
        _log2(bdp / cwnd_segments),
        _log2(cwnd_segments),
        interval.in_flight_segments / cwnd_segments,
        lost / (lost + delivered) if lost else 0.0,
        float(interval.timeouts > 0),
    )
    bounded = [
        min(max(value, low), high)
        for value, (_, low, high) in zip(values, OBSERVATION, strict=True)
    ]
    return np.array(bounded, dtype=np.float32)


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf


def cwnd_after(cwnd_segments: float, action: float) -> float:
    """Cwnd after an action, in segments."""
    return min(max(cwnd_segments * math.exp2(action), 1.0), LARGEST_CWND_SEGMENTS)


class Policy(Congestion):
    """A network that decides cwnd once per interval.

    ``layers`` has weights (outputs × inputs) and biases of each layer; all but the last one are
    followed by ``activation``. The first one has as many inputs as ``OBSERVATION``, the last one an
    output, which is the action. ``mean`` and ``scale`` normalise the observation first. With
    ``interval_ms`` None the policy decides once per smoothed RTT. Raises ``InputError`` for layers
    that do not fit and for weights that are not finite.
    """

    name = "policy"

    def __init__(
        self,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        activation: Activation = "tanh",
        mean: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        interval_ms: float | None = None,
    ) -> None:
        inputs = len(OBSERVATION)
        if activation not in ("tanh", "relu"):
            raise InputError(f"policy: activation is {activation!r}, which must be tanh or relu")
        self.activation: Activation = activation
        self.mean = _array("mean", np.zeros(inputs) if mean is None else mean, (inputs,))
        self.scale = _array("scale", np.ones(inputs) if scale is None else scale, (inputs,))
        if not (self.scale > 0).all():
            raise InputError("policy: scale must be above 0")
        self.interval_ms = interval_ms
        self.layers: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for number, (weights, biases) in enumerate(layers):
            outputs = np.shape(biases)[:1] if number < len(layers) - 1 else (len(ACTION),)
            matrix = _array(f"weights of layer {number}", weights, (*outputs, inputs))
            self.layers.append((matrix, _array(f"biases of layer {number}", biases, outputs)))
            inputs = matrix.shape[0]
        if not self.layers:
            raise InputError("policy: it has no layers")

    def act(self, observation: Vector) -> float:
        """Action for an observation."""
        normalised = (observation - self.mean) / self.scale
        values = np.clip(normalised, -_NORMALISED_LIMIT, _NORMALISED_LIMIT)
        for weights, biases in self.layers[:-1]:
            values = weights @ values + biases
            values = np.tanh(values) if self.activation == "tanh" else np.maximum(values, 0.0)
        weights, biases = self.layers[-1]
        return float(np.clip(weights @ values + biases, ACTION[0].low, ACTION[0].high)[0])

    def on_interval(self, interval: Interval, window: Window) -> None:
        """Change cwnd by the policy's action."""
        action = self.act(observe(interval, window.cwnd_segments))
        window.cwnd_segments = cwnd_after(window.cwnd_segments, action)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the policy to a file of numpy (``.npz``)."""
        arrays: dict[str, NDArray[Any]] = {
            "observation": np.array([element.name for element in OBSERVATION]),
            "activation": np.array(self.activation),
            "interval_ms": np.array(np.nan if self.interval_ms is None else self.interval_ms),
            "mean": self.mean,
            "scale": self.scale,
        }
        for number, (weights, biases) in enumerate(self.layers):
            arrays |= {f"weights_{number}": weights, f"biases_{number}": biases}
        try:
            with open(file, "wb") as opened:  # noqa: PTH123 - savez would add a suffix
                np.savez(opened, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            raise AirpathError(f"cannot write {os.fspath(file)}: {reason(error)}") from None

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Self:
        """Read a policy that ``save`` wrote; the file runs no code.

        Raises ``InputError`` if it is something else.
        """
        name = os.fspath(file)
        try:
            return cls._read(file)
        except OSError as error:
            raise InputError(f"cannot read {name}: {reason(error)}") from None
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{name} is not a policy: {error}") from None

    @classmethod
    def _read(cls, file: str | os.PathLike[str]) -> Self:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _LARGEST_FILE:
                raise ValueError(f"it is larger than {_LARGEST_FILE} bytes")
        with np.load(file, allow_pickle=False) as stored:
            names = [str(name) for name in stored["observation"]]
            if names != [element.name for element in OBSERVATION]:
                raise ValueError(
                    f"it observes other quantities than this airpath: {', '.join(names)}"
                )
            count = sum(key.startswith("weights_") for key in stored.files)
            layers = [(stored[f"weights_{at}"], stored[f"biases_{at}"]) for at in range(count)]
            interval_ms = float(stored["interval_ms"])
            return cls(
                layers,
                str(stored["activation"]),  # type: ignore[arg-type]
                stored["mean"],
                stored["scale"],
                None if math.isnan(interval_ms) else interval_ms,
            )

    @classmethod
    def of_stable_baselines(cls, model: Any, interval_ms: float | None = None) -> Self:
        """Policy of a PPO or A2C model of Stable-Baselines3 with ``MlpPolicy``.

        If the model learned through ``VecNormalize``, its mean and variance are included. The
        action is the mean of the distribution, as with ``predict(deterministic=True)``. Raises
        ``InputError`` for a policy of another kind.
        """
        try:
            network = model.policy.mlp_extractor.policy_net
            modules = [*network, model.policy.action_net]
        except (AttributeError, TypeError):
            raise InputError(
                "policy: only PPO and A2C of Stable-Baselines3 with MlpPolicy can be exported, "
                f"not {type(model).__name__}"
            ) from None
        layers = []
        activations = set()
        for module in modules:
            if hasattr(module, "weight"):
                layers.append((_numpy(module.weight), _numpy(module.bias)))
            else:
                activations.add(type(module).__name__.lower())
        if len(activations) > 1:
            raise InputError(f"policy: its activations differ: {', '.join(sorted(activations))}")
        activation: Any = activations.pop() if activations else "tanh"
        mean, scale = _normalisation(model.get_vec_normalize_env())
        return cls(layers, activation, mean, scale, interval_ms)


def _numpy(tensor: Any) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _normalisation(normalise: Any) -> tuple[ArrayLike | None, ArrayLike | None]:
    if normalise is None or not normalise.norm_obs:
        return None, None
    if normalise.clip_obs != _NORMALISED_LIMIT:
        raise InputError(f"policy: clip_obs of VecNormalize must be {_NORMALISED_LIMIT}")
    return normalise.obs_rms.mean, np.sqrt(normalise.obs_rms.var + normalise.epsilon)


def _array(what: str, given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"policy: {what} must be numbers") from None
    if array.shape != shape:
        raise InputError(f"policy: {what} have the shape {array.shape}, which must be {shape}")
    if not np.isfinite(array).all():
        raise InputError(f"policy: {what} must be finite")
    return array
