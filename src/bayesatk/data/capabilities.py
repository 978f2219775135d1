"""Capabilities of a study, and which of them cannot be combined with what, with reasons.

The refusals, the matrix in the documentation and the tests all come from the table `REFUSED`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from bayesatk._tools.messages import Argument, ArgumentError

Capability = Literal[
    "group", "covariates", "judge", "weight", "prior trials", "pooling none", "pooling complete",
    "categories", "votes", "families", "truth", "success metrics",
    "pooling partial", "law", "bootstrap", "pooling own",
]  # fmt: skip
Operation = Literal[
    "table", "compare", "exact_loo", "leaderboard", "criticise", "plan", "question_table",
    "noise_floor", "e_value", "claim", "gate", "extrapolation_range", "evidence",
    "random_baseline", "tail_exponent", "difficulty_plot", "shrinkage_plot",
    "chance", "gate_rates",
]  # fmt: skip


@dataclass(frozen=True)
class Feature:
    """How a capability is asked for, and how to do without it.

    Parameters
    ----------
    words : str
        Its name in messages and tables.
    argument : Argument
        The argument that turns it on.
    without : tuple of str and Argument
        The remedy without it, which follows "To go on," or "or".
    """

    words: str
    argument: Argument
    without: tuple[str | Argument, ...]

    @property
    def named(self) -> tuple[str | Argument, ...]:
        """The argument, with the words where several features share the argument `metrics`."""
        several = self.argument.name == "metrics"
        return (self.argument, f" of {self.words}") if several else (self.argument,)


def _left_out(words: str, name: str) -> Feature:
    return Feature(words, Argument(name), ("leave out ", Argument(name)))


def _of_population(population: str) -> Feature:
    words = f"population={population!r}"
    without = ("leave out ", Argument("population"))
    return Feature(words, Argument("population", population), without)


def _pooled(pooling: str, instead: str) -> Feature:
    """Return the feature of a kind of pooling, with the kind to pass in place of it."""
    argument = Argument("pooling", pooling)
    return Feature(f"pooling={pooling!r}", argument, ("pass ", Argument("pooling", instead)))


_APART = "ask for votes between answers in an evaluation without other options"
_OF_SCORES = (
    "ask for metrics of scores: 'mean', 'max@k' or 'min@k' (pass@k and pass^k of right 1 and "
    "wrong 0)"
)
FEATURES: Mapping[Capability, Feature] = {
    "group": Feature("groups", Argument("group"), ("pass ", Argument("group", False))),
    "covariates": _left_out("covariates", "covariates"),
    "judge": _left_out("marks of a judge that errs", "judge"),
    "truth": Feature(
        "trials of known truth", Argument("truth"), ("read the data without ", Argument("truth"))
    ),
    "weight": Feature(
        "weights", Argument("weight"),
        ("leave out ", Argument("weight"), ", as data.unweighted() does"),
    ),
    "prior trials": _left_out("prior trials", "prior_trials"),
    "pooling none": _pooled("none", "partial"),
    "pooling complete": _pooled("complete", "partial"),
    "categories": Feature(
        "scored categories", Argument("metrics"),
        ("say what a success is, ", Argument("success", "score >= 0.5"),
         ", with metrics of right and wrong, such as 'pass@1'"),
    ),
    "votes": Feature("votes between answers", Argument("metrics"), (_APART,)),
    "families": Feature(
        "difficulty families", Argument("difficulty"), ("leave out ", Argument("difficulty"))
    ),
    "success metrics": Feature(
        "metrics of right and wrong alone", Argument("metrics"), (_OF_SCORES,)
    ),
    "pooling partial": _pooled("partial", "none"),
    "law": _of_population("law"),
    "bootstrap": _of_population("bootstrap"),
    "pooling own": Feature(
        "draws of your own model", Argument("fit"), ("bayesatk.evaluate(data, metrics)",)
    ),
}  # fmt: skip
Pair = tuple[Capability, Capability | Operation]
_ONE_P = "all questions have one success probability, so they do not differ"
_NO_LAW = "each question has a prior of its own, so no distribution of difficulty is fitted"
_ANSWERS = "questions have answers of their own, so one distribution of them all says nothing"
_RATE = "it is about a success probability, and trials with scores have several probabilities"
_GUESSES = "how a judge marks guesses is not known: its error rates are of what systems answer"
_OWN = "the library does not know the law of questions of your own model"


def _pairs(
    table: Mapping[Capability, Mapping[Capability | Operation, str]],
) -> dict[Pair, str]:
    """Return reasons by pair, from a table of reasons by capability.

    Trials of known truth are refused wherever marks of a judge are, unless the table says more.
    """
    pairs = {(first, second): why for first, row in table.items() for second, why in row.items()}
    return {_with_truth(pair): why for pair, why in pairs.items()} | pairs


def _with_truth(names: Any) -> Any:
    """Return capabilities with trials of known truth in place of a judge."""
    return tuple("truth" if name == "judge" else name for name in names)


# Statistical reasons, by capability and what it cannot be combined with.
REFUSED = _pairs(
    {
        "group": {
            "plan": "it counts questions that are drawn one by one (the width for new groups falls "
            "as one over the root of the number of groups)",
            "tail_exponent": "with normal effects of groups 1 - pass@k follows no power law",
            "difficulty_plot": "there is a distribution for each group",
        },
        "covariates": {
            "pooling none": "each question has a prior of its own, and its covariates "
            "would say nothing about it",
            "pooling complete": _ONE_P + " with their covariates",
            "tail_exponent": "the exponent is that of the questions whose covariates make them "
            "hardest, however few they are",
            "difficulty_plot": "there is a distribution for all values of covariates",
        },
        "weight": {
            "random_baseline": "the best guesser is known by its number of right trials, which "
            "have no weights",
        },
        "judge": {
            "categories": "the error rates of a judge are of right and wrong; a judge of scores "
            "has a rate for each pair of scores",
            "votes": "a vote is between answers, which are not marks",
            "e_value": "it bets on marks, which are evidence about the judge as much as about "
            "the systems",
            "extrapolation_range": "a range of marks is none of success",
            "gate_rates": "how often such a gate errs depends on how the judge will mark the next "
            "system, which the data of a baseline do not say",
            "random_baseline": _GUESSES,
            "chance": _GUESSES,
            "difficulty_plot": "the rates that it shows beside the distribution are of marks",
        },
        "truth": {
            "plan": "it would have to be known which of the trials to come will be marked by hand",
        },
        "law": {
            "pooling none": _NO_LAW + " from which new questions could come",
        },
        "prior trials": {
            "votes": "prior trials are counts of marks, without the answers that tell how often "
            "wrong ones agree",
        },
        "votes": {
            "pooling complete": _ANSWERS + " of who wins a vote",
        },
        "families": {
            "pooling none": _NO_LAW,
            "pooling complete": _ONE_P + " by any distribution",
        },
        "categories": {
            "extrapolation_range": _RATE,
            "tail_exponent": _RATE,
            "e_value": "its bets are on which of two systems is right where the other is wrong",
            "random_baseline": "a guesser is right or wrong",
            "difficulty_plot": _RATE,
            "shrinkage_plot": _RATE,
            "chance": "a guesser is right or wrong",
            "gate_rates": "they say what a loss does to verdicts, and a loss of a mean score may "
            "come from any of the scores",
        },
        "pooling none": {
            "plan": _NO_LAW + " from which new questions could come",
            "criticise": _NO_LAW + " that the data could contradict",
            "tail_exponent": _NO_LAW,
            "difficulty_plot": _NO_LAW,
        },
        "pooling complete": {
            "tail_exponent": _ONE_P,
            "difficulty_plot": _ONE_P,
        },
        "bootstrap": {
            "pooling complete": _ONE_P + " when they are resampled",
        },
        "pooling own": {
            **dict.fromkeys(
                (
                    "criticise",
                    "plan",
                    "evidence",
                    "tail_exponent",
                    "difficulty_plot",
                    "chance",
                ),
                _OWN,
            ),
            "exact_loo": _OWN + "; az.loo and az.compare read its log likelihood",
        },
    }
)

_WORDS: Mapping[Operation, str] = {
    "leaderboard": "a leaderboard", "criticise": "checks of the shape of difficulties",
    "plan": "a plan", "question_table": "laws of single questions", "e_value": "an e-value",
    "noise_floor": "a noise floor", "extrapolation_range": "a range over difficulty distributions",
    "exact_loo": "leave-one-out", "evidence": "evidence", "claim": "a claim", "gate": "a gate",
    "random_baseline": "a random baseline",
    "tail_exponent": "the law of large k",
    "difficulty_plot": "one distribution of difficulties", "shrinkage_plot": "a plot of shrinkage",
    "chance": "a comparison with guessing", "table": "a table", "compare": "a comparison",
    "gate_rates": "rates of simulated gates",
}  # fmt: skip


def reason(first: str, second: str) -> str | None:
    """Return why two capabilities, or a capability and an operation, cannot be combined.

    Examples
    --------
    >>> reason("pooling complete", "covariates") == reason("covariates", "pooling complete")
    True
    >>> reason("judge", "pooling none") is None
    True
    """
    pairs = (first, second), (second, first)
    return next((REFUSED[pair] for pair in pairs if pair in REFUSED), None)


def require_together(values: Mapping[Capability, object]) -> None:
    """Refuse capabilities that cannot be combined.

    Parameters
    ----------
    values : mapping {capability: value}
        The capabilities of a study, with the values that messages show.
    """
    for pair in combinations(values, 2):
        why = reason(*pair)
        if why is not None:
            first, second = (FEATURES[name] for name in pair)
            raise ArgumentError(
                *first.named,
                " must be left out with ",
                *second.named,
                f": {why}. Got {values[pair[0]]!s:.80} with {values[pair[1]]!s:.80}. To go on, ",
                *first.without,
                "; or ",
                *second.without,
                ".",
            )


def answered(operation: Operation, held: Iterable[Capability]) -> bool:
    """Return whether an operation is possible with these capabilities.

    Examples
    --------
    >>> answered("plan", ["covariates", "pooling partial"]), answered("plan", ["pooling none"])
    (True, False)
    """
    return not any(reason(capability, operation) for capability in held)


def require_operation(
    operation: Operation, values: Mapping[Capability, object], argument: str = "fit"
) -> None:
    """Refuse an operation that is impossible with one of the capabilities.

    Parameters
    ----------
    operation : Operation
    values : mapping {capability: value}
        The capabilities of a study, with the values that messages show.
    argument : str
        The argument of the operation that holds the study.
    """
    again = "Instead, " if argument == "data" else "Evaluate the same data again: "
    for capability, value in values.items():
        why = reason(capability, operation)
        if why is not None:
            feature = FEATURES[capability]
            raise ArgumentError(
                argument,
                f" must be without {feature.words} for {_WORDS[operation]}: "
                f"{why}. Got {value!s:.80}. {again}",
                *feature.without,
                ".",
            )


def refused_pairs() -> list[tuple[str, str, str]]:
    """Return the pairs that cannot be combined, with the reasons, in words.

    Examples
    --------
    >>> refused_pairs()[0][:2]
    ('groups', 'a plan')
    """
    return [(FEATURES[first].words, _name(second), why) for (first, second), why in REFUSED.items()]


def _name(name: Capability | Operation) -> str:
    return FEATURES[name].words if name in FEATURES else _WORDS[name]  # type: ignore[index]
