"""Closed forms compared with samplers (`bayesatk.verify`), and calibration by simulation."""
