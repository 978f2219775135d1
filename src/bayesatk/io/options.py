"""Options by which files are read, declared once: `load`, `convert` and the shell share them.

Nothing is imported here that takes time: the shell reads its options before any data.
"""

from dataclasses import dataclass
from typing import Literal

QuestionKey = Literal["id", "content", "unchecked"]


@dataclass(frozen=True)
class FileOptions:
    """What files of any format are told; the parameters of `bayesatk.load` of the same names."""

    records: str | None = None
    wide: bool = False
    format: str | None = None
    scorer: str | None = None
    filter: str | None = None
    task: str | None = None
    answers: bool = False
    question_key: QuestionKey = "id"
    same_system: Literal["error", "trials"] = "error"
    empty_output: Literal["marked", "missing"] = "marked"
    strict: bool = False
