"""The statistics: functions of arrays, with NumPy and SciPy only."""
