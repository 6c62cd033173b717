"""Figures from tables: means with confidence, fairness, thinning for plots."""

from airpath.analysis.downsample import downsample
from airpath.analysis.fairness import jain_index
from airpath.analysis.statistics import Interval, mean_interval, student_t_quantile

__all__ = ["Interval", "downsample", "jain_index", "mean_interval", "student_t_quantile"]
