"""Closed-form posteriors, labelled: `bayesatk.evaluate`."""
