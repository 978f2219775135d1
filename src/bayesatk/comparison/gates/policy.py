"""The rules of a gate, stated before its data: from Python or a TOML file, with a digest."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from bayesatk._tools.arguments import proper_probability, real_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics.grid import Metric, parse
from bayesatk.results.schema import TARGETS

RULES = ("non-inferiority", "superiority")


@dataclass(frozen=True)
class GatePolicy:
    """Rules by which a new system passes or fails against a baseline.

    Parameters
    ----------
    metric : str
        One metric at one k.
    margin : float
        Under non-inferiority, how much worse the new system may be (> 0); under superiority, by
        how much it must be better (0 or more).
    rule : {"non-inferiority", "superiority"}
        The new system passes if its difference to the baseline (new minus baseline) is above
        ``-margin`` (non-inferiority) or above ``+margin`` (superiority) with posterior probability
        of at least `level`. It fails if the difference is below that threshold with probability of
        at least `level`.
    level : float
        Posterior probability that a verdict needs, in (0.5, 1).
    target : {"questions", "population"}
        ``"questions"``: the mean over these questions, the same in every run; ``"population"``:
        over questions like these.
    effect : float, optional
        A difference (new minus baseline) at which the power of the gate is reported.
    floors : mapping, optional
        Smallest acceptable value of the metric by question label, or by name of a group in `groups`
        or in the data (``group=`` of `bayesatk.tally`). The new system fails if one value is below
        its floor, and passes only if none is, each with posterior probability
        ``1 - (1 - level) / number of floors``.
    groups : mapping {name: sequence of question labels}, optional
        Groups for `floors`; the value of a group is the mean over its questions.
    pooling : {"partial", "none", "complete"}
        As in `bayesatk.evaluate`.

    See Also
    --------
    bayesatk.gate : applies a policy.

    Examples
    --------
    >>> policy = GatePolicy("pass@1", margin=0.02, effect=-0.05)
    >>> policy.threshold, len(policy.sha256)
    (-0.02, 64)
    """

    metric: str
    margin: float
    rule: Literal["non-inferiority", "superiority"] = "non-inferiority"
    level: float = 0.95
    target: Literal["questions", "population"] = "questions"
    effect: float | None = None
    floors: Mapping[Any, float] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    pooling: Literal["partial", "none", "complete"] = "partial"

    def __post_init__(self) -> None:
        self._check_words()
        real_number("margin", self.margin)
        least = "> 0" if self.rule == RULES[0] else "0 or more"
        if not (self.margin > 0.0 or (self.margin == 0.0 and self.rule == RULES[1])):
            rule = f" must be {least} for {self.rule}; got {self.margin}. Try 0.02."
            raise ArgumentError(Argument("margin"), rule)
        proper_probability("level", self.level, 0.95, least=0.5)
        if self.effect is not None:
            real_number("effect", self.effect)
        self._check_floors()

    def _check_words(self) -> None:
        (_, *more_metrics) = parse(self.metric)
        if more_metrics:
            raise ArgumentError(
                Argument("metric"), f" must be one metric at one k; got {self.metric!r}."
            )
        poolings = ("partial", "none", "complete")
        for name, allowed in (("rule", RULES), ("target", TARGETS), ("pooling", poolings)):
            value = getattr(self, name)
            if value not in allowed:
                raise ArgumentError(
                    Argument(name), f" must be one of {', '.join(allowed)}; got {value!r:.80}."
                )

    def _check_floors(self) -> None:
        for name in ("floors", "groups"):
            if not isinstance(getattr(self, name), Mapping):
                rule = f" must be a mapping; got {getattr(self, name)!r:.80}."
                raise ArgumentError(Argument(name), rule)
        for label, floor in self.floors.items():
            real_number(f"floors: of {label!r}", floor)
        for label, questions in self.groups.items():
            if not isinstance(questions, list | tuple) or not questions:
                raise ArgumentError(
                    Argument("groups"),
                    f" must name the questions of each group; got {questions!r:.80} for {label!r}.",
                )
        unused = [label for label in self.groups if label not in self.floors]
        if unused:
            raise ArgumentError(
                Argument("groups"), f" must each have a floor; {unused[0]!r} has none in floors."
            )

    @property
    def asked(self) -> Metric:
        """The metric."""
        return parse(self.metric)[0]

    @property
    def threshold(self) -> float:
        """Difference (new minus baseline) above which the new system passes."""
        return self.margin if self.rule == RULES[1] else -self.margin

    @property
    def sha256(self) -> str:
        """SHA-256 of all rules, as JSON with sorted keys; comments in a file do not change it."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the rules in a form that JSON can store; labels are text."""
        rules = asdict(self)
        rules["floors"] = {str(label): float(floor) for label, floor in self.floors.items()}
        rules["groups"] = {
            name: [str(question) for question in questions]
            for name, questions in self.groups.items()
        }
        return {name: value for name, value in rules.items() if value not in (None, {})}

    @classmethod
    def read(cls, path: str | Path) -> "GatePolicy":
        r"""Read a TOML file whose keys are the parameters.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "gate.toml"
        >>> _ = path.write_text('metric = "pass@1"\nmargin = 0.02\n[floors]\n"q7" = 0.9\n')
        >>> GatePolicy.read(path).floors
        {'q7': 0.9}
        """
        try:
            rules = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"policy must be a TOML file; {path} is none: {error}.") from None
        keys = [parameter.name for parameter in fields(cls)]
        wrong = [name for name in rules if name not in keys]
        lacking = [name for name in ("metric", "margin") if name not in rules]
        if wrong or lacking:
            fault = f"it has {wrong[0]!r}" if wrong else f"it lacks {lacking[0]!r}"
            raise ValueError(f"policy must have keys from {', '.join(keys)}; in {path} {fault}.")
        return cls(**rules)
