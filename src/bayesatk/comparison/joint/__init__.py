"""The joint posterior of all systems: of one model, or of models of their own that are paired."""
