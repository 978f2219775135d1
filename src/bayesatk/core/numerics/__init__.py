"""Numerical tools without models of their own: quadrature, importance sampling, slices."""
