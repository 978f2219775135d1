from .building import build as build
from .compiled import CompiledModel as CompiledModel
from .compiled import compile_beta_binomial as compile_beta_binomial
from .compiled import compile_dirichlet_multinomial as compile_dirichlet_multinomial
from .guessers import build_random_guessers as build_random_guessers
from .guessers import sample_random_baseline as sample_random_baseline
from .systems import build_one_factor as build_one_factor
from .votes import build_answers as build_answers
