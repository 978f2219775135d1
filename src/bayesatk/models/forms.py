"""Forms of the PyMC models, and what each of them has no model for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from bayesatk._tools.arguments import one_of
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.study import Study
from bayesatk.priors import Families, HyperPrior, Pooling

Form = Literal["full", "marginal", "crossed"]


def default_form(pooling: Pooling) -> Form:
    """Return the form of a model that mixes best for its cost."""
    return "marginal" if pooling == "partial" else "full"


def check_form(
    form: str, difficulty: Families, judge: object, covariates: object, group: object
) -> None:
    """Refuse what a form has no model for."""
    one_of("form", form, ("marginal", "full", "crossed"))
    if form == "crossed" and judge is not None:
        raise ValueError(
            "judge must be left out for form='crossed', which takes marks as they are."
        )
    if form == "crossed" and difficulty is not None:
        raise ArgumentError(
            Argument("difficulty"),
            " must be left out for form='crossed', whose difficulties are logit-normal; "
            f"got {difficulty!r:.80}.",
        )
    for name, value in (("covariates", covariates), ("group", group)):
        if value is not None and form == "crossed":
            raise ArgumentError(
                Argument("form"), f" must be 'marginal' or left out with {name}=; got {form!r}."
            )


def check_crossed(study: Study, keep: Sequence[str]) -> None:
    """Refuse what the crossed model cannot give."""
    if study.scale.axes or study.votes or study.pooling != "partial":
        raise ValueError(
            "form='crossed' is a model of right and wrong under pooling='partial'; got "
            f"{[one.label for one in study.metrics]} with pooling={study.pooling!r}. Leave "
            "pooling as it is; for scores, say what a success is: success='score >= ...'."
        )
    if set(keep) - {"p"}:
        raise ArgumentError(
            Argument("keep"),
            " must be empty or ['p'] for form='crossed', which has no closed likelihood of a "
            f"question; got {list(keep)}.",
        )


def check_votes(study: Study) -> None:
    """Refuse votes between answers of questions in groups, which have no sampled model."""
    if study.votes and study.grouping is not None:
        raise ArgumentError(
            Argument("group"), " must be left out to sample votes between answers; got "
            f"{[metric.label for metric in study.votes]}. Ask for other metrics on their own.",
        )  # fmt: skip


def one_latent_family[Kind](prior: Kind, form: str, by_default: bool, judged: bool = False) -> Kind:
    """Return the prior with one family, where a model takes no more than that.

    A model that samples every p is of the Beta. The evidences of systems that a judge marked do
    not add up, so their families cannot be averaged by them.

    Parameters
    ----------
    prior : any
        Of a model of this form.
    form : str
    by_default : bool
        Whether neither prior nor families were asked for.
    judged : bool
        Whether judges that err marked the trials, or questions have covariates or groups.
    """
    if not isinstance(prior, HyperPrior) or not (form == "full" or judged):
        return prior
    if by_default:
        return replace(prior, families="beta")
    if form != "full" and len(prior.family_prior) > 1:
        families = list(prior.family_prior)
        raise ArgumentError(
            Argument("difficulty"),
            " must be one family with judge=, group= or covariates= in PyMC, where several are not "
            "averaged; "
            f"got {', '.join(families)}. Pass difficulty={families[0]!r}.",
        )
    if form != "full":
        return prior
    if set(prior.family_prior) != {"beta"}:
        raise ValueError(
            "form='full' samples every success probability, which the Beta alone allows; got "
            f"families {', '.join(prior.family_prior)}. Pass difficulty='beta', or leave out form."
        )
    return prior
