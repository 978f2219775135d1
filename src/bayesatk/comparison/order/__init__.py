"""Evidence that may be looked at while an evaluation grows."""
