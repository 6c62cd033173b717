"""Figures from tables: means with confidence, fairness, thinning for plots."""

from airpath.analysis.fairness import jain_index
from airpath.analysis.statistics import Interval, mean_interval, student_t_quantile
from airpath.analysis.thin import thin

__all__ = ["Interval", "jain_index", "mean_interval", "student_t_quantile", "thin"]
