"""Results as InferenceData: built, read back once, tabulated."""

from bayesatk.results.result import Result as Result
from bayesatk.results.tables import notes as notes

__all__ = ["Result", "notes"]
