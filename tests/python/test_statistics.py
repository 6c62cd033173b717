from __future__ import annotations

import polars as pl
import pytest

from airpath.analysis import downsample, jain_index, mean_interval, student_t_quantile
from airpath.analysis.statistics import percent_above


# Student's t, two-sided 95 %: any table of it.
@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (120, 1.980), (1000, 1.962)],
)
def test_student_t_quantile_matches_the_table(degrees: int, quantile: float) -> None:
    assert student_t_quantile(0.975, degrees) == pytest.approx(quantile, abs=5e-4)


def test_mean_interval_of_five_values() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.mean == 3.0
    # 3 ± 2.776 · sqrt(2.5 / 5)
    assert interval.bounds == pytest.approx([1.0368, 4.9632], abs=1e-4)


def test_one_value_has_no_interval() -> None:
    assert mean_interval([7.0]).bounds is None


def test_percent_above_pairs_the_values() -> None:
    # Ratio 1.5; linearised, the two pairs are 75 and 25 %, and t is 12.706.
    above = percent_above([2.0, 4.0], [1.0, 3.0])
    assert above.mean == pytest.approx(50)
    assert above.high == pytest.approx(50 + 12.7062 * 25, rel=1e-5)
    # What all pairs have in common does not widen it.
    assert percent_above([1.1, 2.2, 5.5], [1.0, 2.0, 5.0]).bounds == pytest.approx([10, 10])


def test_equal_values_have_an_interval_without_width() -> None:
    assert mean_interval([0.1, 0.1, 0.1]).bounds == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize(
    ("shares", "index"),
    [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([2, 1], 0.9), ([0, 0], 1.0), ([5], 1.0)],
)
def test_jain_index(shares: list[float], index: float) -> None:
    assert jain_index(shares) == pytest.approx(index)


def test_jain_index_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="no shares"):
        jain_index([])
    with pytest.raises(ValueError, match="negative"):
        jain_index([1, -1])


def _frame(rows: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "t": range(rows),
            "s": ["a", "b"] * (rows // 2),
            "v": [float(i % 97) for i in range(rows)],
            "w": [float(i % 89) for i in range(rows)],
        }
    )


def test_short_series_are_not_downsampled() -> None:
    frame = _frame(1000)
    kept, downsampled = downsample(frame, "t", ["v", "w"], ["s"], limit=500)
    assert not downsampled
    assert kept.equals(frame)


def test_thinning_keeps_peaks_gaps_ends_and_order() -> None:
    frame = _frame(50_000).with_columns(
        pl.when(pl.col("t") == 31_234).then(1e6)
        .when(pl.col("t") == 11_111).then(-1e6)
        .when(pl.col("t") == 20_000).then(None)
        .otherwise("v").alias("v"),
        pl.when(pl.col("t") == 41_234).then(2e6).otherwise("w").alias("w"),
    )  # fmt: skip
    kept, downsampled = downsample(frame, "t", ["v", "w"], ["s"], limit=2000)
    assert downsampled
    assert kept.group_by("s").len()["len"].max() <= 2000  # type: ignore[operator]
    assert kept["v"].max() == 1e6
    assert kept["v"].min() == -1e6
    assert kept["w"].max() == 2e6
    assert kept["v"].null_count() == 1
    assert kept["t"].is_sorted()
    assert kept["t"].min() == 0
    assert kept["t"].max() == 49_999
