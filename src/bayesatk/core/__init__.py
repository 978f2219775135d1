"""The statistics: pure functions of arrays, numpy and scipy only, elementwise in counts."""
