from .guessers import build_random_guessers as build_random_guessers
from .guessers import sample_random_baseline as sample_random_baseline
from .program import build as build
from .votes import build_answers as build_answers
