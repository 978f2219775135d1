"""One declared model of a system's questions: laws, observations, structure, and their points."""
