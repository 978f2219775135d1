"""What to cite: BibTeX of the methods that a result used."""

from importlib.metadata import version
from typing import Any

import xarray as xr

from bayesatk.results.result import Result

RUBIN = "Rubin 1981, Annals of Statistics 9(1), 130-134 (Bayesian bootstrap)"
HOFFMAN = "Hoffman and Gelman 2014, JMLR 15, 1593-1623 (NUTS)"
TALTS = "Talts et al. 2018, arXiv:1804.06788"
YAUNEY = "Yauney and Mimno 2024, arXiv:2404.13020 (max random baseline)"
GELMAN = "Gelman et al. 2013, Bayesian Data Analysis, 3rd edition, chapter 5"
GELMAN_CARPENTER = "Gelman and Carpenter 2020, JRSS C 69(5), 1269-1283 (imperfect tests)"
CROWDER = "Crowder 1978, Applied Statistics 27(1), 34-37 (beta-binomial regression)"
_PYMC, _ARVIZ, _SELF = "PyMC", "ArviZ", "bayesatk"


def _arxiv(key: str, author: str, title: str, year: int, eprint: str) -> str:
    return (
        f"@misc{{{key},\n  author = {{{author}}},\n  title = {{{title}}},\n"
        f"  year = {{{year}}},\n  eprint = {{{eprint}}},\n  archivePrefix = {{arXiv}}\n}}"
    )


_ENTRIES = {
    "arXiv:2107.03374": _arxiv(
        "chen2021evaluating", "Chen, Mark and others",
        "Evaluating Large Language Models Trained on Code", 2021, "2107.03374",
    ),
    "arXiv:2406.12045": _arxiv(
        "yao2024tau", "Yao, Shunyu and Shinn, Noah and Razavi, Pedram and Narasimhan, Karthik",
        "{$\\tau$}-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains",
        2024, "2406.12045",
    ),
    "Findings of ACL 2025, 905": (
        "@inproceedings{liu2025stable,\n  author = {Liu, Junnan and others},\n"
        "  title = {Are Your {LLMs} Capable of Stable Reasoning?},\n"
        "  booktitle = {Findings of the Association for Computational Linguistics: ACL 2025},\n"
        "  number = {905},\n  year = {2025}\n}"
    ),
    "arXiv:2601.08763": _arxiv(
        "hu2026rewarding", "Hu, Z. and others",
        "Rewarding the Rare: Uniqueness-Aware {RL} for Creative Problem Solving in {LLMs}",
        2026, "2601.08763",
    ),
    "arXiv:2510.04265": _arxiv(
        "hariri2026bayesian", "Hariri, Mohsen and others",
        "Don't Pass@k: A {Bayesian} Framework for Large Language Model Evaluation",
        2026, "2510.04265",
    ),
    "arXiv:2510.23393": _arxiv(
        "bagirov2025best", "Bagirov, Farid and others",
        "The Best of {N} Worlds: Aligning Reinforcement Learning with Best-of-{N} Sampling via "
        "max@k Optimisation", 2025, "2510.23393",
    ),
    "arXiv:2504.13359": _arxiv(
        "erol2025cost", "Erol, Mehmet Hamza and El, Batu and Suzgun, Mirac and Yuksekgonul, Mert "
        "and Zou, James",
        "Cost-of-Pass: An Economic Framework for Evaluating Language Models", 2025, "2504.13359",
    ),
    TALTS: _arxiv(
        "talts2018validating", "Talts, Sean and Betancourt, Michael and Simpson, Daniel and "
        "Vehtari, Aki and Gelman, Andrew",
        "Validating {Bayesian} Inference Algorithms with Simulation-Based Calibration",
        2018, "1804.06788",
    ),
    YAUNEY: _arxiv(
        "yauney2024stronger", "Yauney, Gregory and Mimno, David",
        "Stronger Random Baselines for In-Context Learning", 2024, "2404.13020",
    ),
    RUBIN: (
        "@article{rubin1981bayesian,\n  author = {Rubin, Donald B.},\n"
        "  title = {The {Bayesian} Bootstrap},\n  journal = {The Annals of Statistics},\n"
        "  volume = {9},\n  number = {1},\n  pages = {130--134},\n  year = {1981}\n}"
    ),
    HOFFMAN: (
        "@article{hoffman2014nuts,\n  author = {Hoffman, Matthew D. and Gelman, Andrew},\n"
        "  title = {The No-{U}-Turn Sampler: Adaptively Setting Path Lengths in {Hamiltonian} "
        "{Monte Carlo}},\n  journal = {Journal of Machine Learning Research},\n"
        "  volume = {15},\n  pages = {1593--1623},\n  year = {2014}\n}"
    ),
    CROWDER: (
        "@article{crowder1978beta,\n  author = {Crowder, Martin J.},\n"
        "  title = {Beta-Binomial {Anova} for Proportions},\n  journal = {Journal of the Royal "
        "Statistical Society C (Applied Statistics)},\n  volume = {27},\n  number = {1},\n"
        "  pages = {34--37},\n  year = {1978}\n}"
    ),
    GELMAN: (
        "@book{gelman2013bayesian,\n  author = {Gelman, Andrew and Carlin, John B. and Stern, Hal "
        "S. and Dunson, David B. and Vehtari, Aki and Rubin, Donald B.},\n"
        "  title = {Bayesian Data Analysis},\n  edition = {3},\n"
        "  publisher = {Chapman and Hall/CRC},\n  year = {2013}\n}"
    ),
    GELMAN_CARPENTER: (
        "@article{gelman2020bayesian,\n  author = {Gelman, Andrew and Carpenter, Bob},\n"
        "  title = {{Bayesian} Analysis of Tests with Unknown Specificity and Sensitivity},\n"
        "  journal = {Journal of the Royal Statistical Society: Series C (Applied Statistics)},\n"
        "  volume = {69},\n  number = {5},\n  pages = {1269--1283},\n  year = {2020}\n}"
    ),
    _PYMC: (
        "@article{abrilpla2023pymc,\n  author = {Abril-Pla, Oriol and others},\n"
        "  title = {{PyMC}: A Modern, and Comprehensive Probabilistic Programming Framework in "
        "{Python}},\n  journal = {PeerJ Computer Science},\n  volume = {9},\n  pages = {e1516},\n"
        "  year = {2023}\n}"
    ),
    _ARVIZ: (
        "@article{kumar2019arviz,\n  author = {Kumar, Ravin and Carroll, Colin and Hartikainen, "
        "Ari and Martin, Osvaldo},\n  title = {{ArviZ} a Unified Library for Exploratory Analysis "
        "of {Bayesian} Models in {Python}},\n  journal = {Journal of Open Source Software},\n"
        "  volume = {4},\n  number = {33},\n  pages = {1143},\n  year = {2019}\n}"
    ),
}  # fmt: skip


def citations(result: xr.DataTree | Result | None = None) -> list[str]:
    """Return what to cite, as short references: of a result, or of the whole library.

    Parameters
    ----------
    result : xarray.DataTree, optional

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    >>> citations(fit)[0]
    'arXiv:2107.03374'
    """
    if result is None:
        return [*_ENTRIES, _SELF]
    fit = Result.of(result, None)
    references: list[Any] = list(fit.described("citations"))
    if fit.covariates is not None:
        references.append(CROWDER)
    elif fit.pooling == "partial":
        references.append(GELMAN)
    if fit.has("comparison"):
        references.append(RUBIN)
    if fit.has("random_baseline"):
        references.append(YAUNEY)
    if fit.sampled:
        references += [HOFFMAN, _PYMC]
    return list(dict.fromkeys([*references, _ARVIZ, _SELF]))


def cite(result: xr.DataTree | Result | None = None) -> str:
    """Return BibTeX entries of the methods that a result used, or of all methods.

    Parameters
    ----------
    result : xarray.DataTree, optional
        From any function of this library; default: all methods of the library.

    Returns
    -------
    str
        BibTeX entries, separated by blank lines.

    See Also
    --------
    bayesatk.provenance : versions, seed and files of a result.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0], [1, 1]], "pass^2", pooling="complete", rng=1)
    >>> cite(fit).splitlines()[0]
    '@misc{yao2024tau,'
    """
    entries = {**_ENTRIES, _SELF: _own_entry()}
    return "\n\n".join(entries.get(reference, f"% {reference}") for reference in citations(result))


def _own_entry() -> str:
    return (
        "@software{bayesatk,\n  author = {{The bayesatk developers}},\n"
        "  title = {bayesatk: Exact {Bayesian} Statistics of Repeated-Trial Evaluation, Verified "
        f"by Sampling}},\n  version = {{{version('bayesatk')}}},\n  year = {{2026}}\n}}"
    )
