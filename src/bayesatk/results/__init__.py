"""Results as InferenceData: built, read, tabulated."""
