from .building import build as build
from .compiled import CompiledModel as CompiledModel
from .compiled import compile_beta_binomial as compile_beta_binomial
from .compiled import compile_dirichlet_multinomial as compile_dirichlet_multinomial
from .guessers import build_random_guessers as build_random_guessers
from .guessers import sample_random_baseline as sample_random_baseline
from .shared_difficulty import build_shared_difficulty as build_shared_difficulty
from .votes import build_answers as build_answers
