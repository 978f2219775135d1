"""Size and shape of every room of the package: budgets that may only go down.

A line limit can be met by packing more into each line. These figures cannot: tokens, classes,
files, constants, functions, tests of which feature is on, and local names that say nothing.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "bayesatk"
FIGURES = ("files", "tokens", "classes", "constants", "functions", "switches", "vague")
VAGUE = frozenset(
    "one own each found some asked told given known place part rest upto every other others chosen "
    "kept made these those here there it all what which said worth".split()
)
FEATURES = re.compile(
    r"_?(grouping|groups?|group_weights|profile|judges?|judging|marking|design|covariates|basis|"
    r"regression|weights?|weighted|prior_counts|prior_trials|earlier|families|voted|answers|"
    r"bootstrapped|hierarchical|pooled|categorical|scored)"
)
CHOICES = re.compile(r"_?(pooling|difficulty|family|scale|law|structure|observation)")
KINDS = re.compile(
    r"prior|model|pool|posterior|scale|law|judge|group|regress|covariate|answer|categor|mark|"
    r"famil|hierarch|conjugate|weighted", re.I,
)  # fmt: skip

EXECUTED = 64  # files of the package that run during evaluate(marks, "pass@1"); goes down, too

# Files, tokens, classes, constants, functions, switches, vague names; `(package)` is what lies
# beside the rooms. Who makes a room smaller lowers its line; a new room takes its line from others.
BUDGETS: dict[str, tuple[int, ...]] = {
    "(package)": (7, 5386, 8, 22, 65, 9, 4),
    "_tools": (11, 5300, 6, 13, 62, 0, 0),
    "cli": (5, 9473, 3, 10, 74, 10, 1),
    "comparison": (38, 67069, 45, 85, 454, 94, 24),
    "core": (61, 89113, 79, 197, 699, 16, 148),
    "costs": (3, 3446, 1, 2, 19, 1, 0),
    "data": (20, 45173, 25, 65, 385, 111, 15),
    "datasets": (2, 891, 0, 1, 5, 0, 0),
    "guessing": (5, 9260, 11, 2, 104, 0, 0),
    "io": (19, 42442, 23, 54, 313, 28, 1),
    "metrics": (5, 5561, 6, 5, 61, 3, 0),
    "models": (16, 31259, 18, 41, 171, 74, 5),
    "plots": (6, 15590, 3, 13, 81, 2, 1),
    "posterior": (20, 38847, 30, 56, 276, 139, 105),
    "priors": (5, 5423, 16, 7, 84, 7, 1),
    "published": (5, 4401, 2, 1, 42, 8, 0),
    "reporting": (3, 4932, 1, 7, 42, 8, 0),
    "results": (16, 27320, 11, 68, 242, 77, 8),
    "verification": (4, 6034, 6, 8, 52, 11, 1),
}


def _last_name(node: ast.expr) -> str:
    """Name that an expression ends in: `prior` of `request.prior`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_switch(node: ast.AST) -> bool:
    """Whether an expression asks if a feature is on, or which kind of model there is."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            names = [_last_name(side) for side in sides]
            return any(map(_is_none, sides)) and any(map(FEATURES.fullmatch, names))
        if isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            return any(CHOICES.fullmatch(_last_name(side)) for side in sides)
    if isinstance(node, ast.Call) and _last_name(node.func) == "isinstance":
        kinds = [name for part in ast.walk(node.args[1]) if (name := _last_name(part))]  # type: ignore[arg-type]
        return any(map(KINDS.search, [_last_name(node.args[0]), *kinds]))
    return False


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Expressions that are asked whether they are true."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []


def _switches(tree: ast.AST) -> int:
    count = 0
    for node in ast.walk(tree):
        count += _is_switch(node)
        for condition in _conditions(node):
            bare = isinstance(condition, ast.Name | ast.Attribute)
            count += bare and bool(FEATURES.fullmatch(_last_name(condition)))
        if isinstance(node, ast.Match):
            count += bool(CHOICES.fullmatch(_last_name(node.subject)))
    return count


def _constants(tree: ast.Module) -> int:
    targets: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return sum(bool(re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name)) for name in names)


def _vague(function: ast.AST) -> int:
    stored = (
        node.id for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )  # fmt: skip
    return len(VAGUE.intersection(stored))


def measured(text: str) -> Counter[str]:
    """Figures of one file."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    counted = (tokenize.NAME, tokenize.OP, tokenize.NUMBER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(
        files=1,
        tokens=sum(token.type in counted for token in tokens),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        constants=_constants(tree),
        functions=len(functions),
        switches=_switches(tree),
        vague=sum(map(_vague, functions)),
    )


def figures_by_room() -> dict[str, Counter[str]]:
    """Figures of every folder of the package, and of the files beside them."""
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] if len(parts) > 1 else "(package)"
        rooms.setdefault(room, Counter()).update(measured(path.read_text(encoding="utf8")))
    return rooms


ROOMS = figures_by_room()


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_stays_within_its_budget(room: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert room in BUDGETS, f"give {room} a line of budgets, and take it from other rooms"
    over = []
    for name, budget in zip(FIGURES, BUDGETS[room], strict=True):
        figure = ROOMS[room][name]
        if figure > budget:
            over.append(f"{name} {figure}, {figure - budget} above the budget")
        elif figure < 0.98 * budget:
            with capsys.disabled():
                print(f"\n{room}: lower the budget of {name} from {budget} to {figure}", end="")
    assert not over, f"{room}: {'; '.join(over)}"


def test_there_is_no_budget_without_a_room() -> None:
    assert set(BUDGETS) <= set(ROOMS), "remove the lines of rooms that are gone"


PROBE = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import bayesatk as bk
marks = {"a": [[1, 1, 0, 1]] * 6 + [[0, 1, 0, 0]] * 6, "b": [[1, 0, 1, 0]] * 6 + [[0, 0, 0, 1]] * 6}
bk.evaluate(marks, "pass@1", rng=1)
root, files = str(Path(bk.__file__).parent), set()
sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename))
bk.evaluate(marks, "pass@1", rng=1)
sys.setprofile(None)
print(sum(file.startswith(root) for file in files))
"""


def test_few_files_run_when_marks_are_evaluated() -> None:
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= EXECUTED, f"{done.stdout.strip()} files run"


@pytest.mark.parametrize(
    ("code", "switches"),
    [
        ("if x.grouping is None: pass", 1),
        ("y = 1 if request.design is not None else 2", 1),
        ("on = self._judge is not None", 1),
        ("if isinstance(prior, HyperPrior): pass", 1),
        ("if isinstance(x, (int, float)): pass", 0),
        ("if pooling == 'none' and scale in ('votes',): pass", 2),
        ("if not request.voted: pass", 1),
        ("if weights and n > 3: pass", 1),
        ("[q for q in y if q.judge]", 1),
        ("match family:\n    case 'beta': pass", 1),
        ("if chains is None: pass", 0),
    ],
)
def test_switches_are_counted_by_what_they_ask(code: str, switches: int) -> None:
    assert measured(code)["switches"] == switches
