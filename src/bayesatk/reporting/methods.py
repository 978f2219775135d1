"""What the poolings and the targets are, in words that stand in a report."""

from bayesatk.data.outcomes import Outcomes

POOLINGS = {
    "partial": (
        "Partial pooling: the success probabilities p of the questions come from one distribution, "
        "of a family that the prior below names (beta; inflated, with questions never or always "
        "solved; mixture, of two Betas; scored categories: Dirichlet). It is estimated together "
        "with them, which shrinks questions with few trials towards the others. Several families "
        "are weighted by their posterior probabilities."
    ),
    "groups": (
        "Groups of questions: within a group p is Beta around the group's mean with one intraclass "
        "correlation; the logits of the means of groups are normal around a common one. Its sd, "
        "the correlation and the common mean are integrated; groups are partially pooled."
    ),
    "covariates": (
        "Regression on covariates: the success probabilities p of the questions are Beta around a "
        "mean whose logit is linear in the covariates, with one intraclass correlation. "
        "Coefficients are integrated by importance sampling. Questions like these are questions "
        "with the covariates of these."
    ),
    "none": (
        "No pooling: every question's p has its own prior, independent of other questions. With "
        "few trials and many questions the bias of the prior does not average out."
    ),
    "complete": "Complete pooling: all questions share one p; they differ by chance alone.",
}

TARGETS = {
    "these": (
        "“These questions”: the mean over exactly these questions; their success probabilities are "
        "uncertain, because trials are few."
    ),
    "like these": (
        "“Questions like these”: the mean over the population that the questions were drawn from; "
        "the choice of the questions is a second source of uncertainty. Claims about a capability "
        "need this target."
    ),
}
GROUPED_TARGETS = {
    "these": TARGETS["these"],
    "like these": (
        "“Questions like these”: the mean over new questions of these groups, the groups with "
        "their weights; the choice of the questions is a second source of uncertainty."
    ),
    "new groups": (
        "“New groups of questions”: the mean over new groups like these, with new questions; the "
        "choice of the groups is a third source of uncertainty. It is the target of clustered "
        "standard errors. Claims beyond these groups need this target."
    ),
}


def usual_metrics(data: Outcomes, success: str | None = None) -> list[str]:
    """Return metrics for a report when none are named: what the trials of a question allow.

    Examples
    --------
    >>> from bayesatk.data.tally import tally
    >>> usual_metrics(tally([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]))
    ['pass@1,2,4', 'pass^2,4']
    """
    trials = data.trials.values
    most = int(trials[trials > 0].min())
    ks = ",".join(str(2**power) for power in range(most.bit_length()))
    if data.binary or success is not None:
        return [f"pass@{ks}", f"pass^{ks.removeprefix('1,')}"] if most > 1 else ["pass@1"]
    return ["bayes", f"max@{ks}"]
