"""PyMC models of the same posteriors: the sampled witness of every closed form.

Shares definitions with the closed forms (outcomes, metrics, priors, result schema) and none of
their computations.
"""
