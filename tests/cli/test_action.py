"""The GitHub Action: its steps run by bash, as a runner does, with a stub of Python for Install."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
# `python -m venv FOLDER` makes a folder whose commands are those of this environment, and whose
# `python -m pip install` says what it would install.
STUB = """\
#!/bin/bash
set -e
test "$1 $2" = "-m venv"
mkdir -p "$3/bin"
printf '%s\\n' '#!/bin/bash' \\
  'if [ "$1 $2 $3" = "-m pip install" ]; then echo "installs ${{@: -1}}"; exit 0; fi' \\
  'exec {python} "$@"' > "$3/bin/python"
printf '%s\\n' '#!/bin/bash' 'exec {python} -c "from bayesatk.cli.app import app; app()" "$@"' \\
  > "$3/bin/bayesatk"
chmod +x "$3/bin/python" "$3/bin/bayesatk"
"""


class Runner:
    """Runs the steps of the composite action, and keeps what they write."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder, self.printed, self.errors = folder, "", ""
        inputs_of_step = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert set(inputs_of_step) <= set(ACTION["inputs"])
        python = folder / "python"
        python.write_text(STUB.format(python=sys.executable))
        python.chmod(0o755)
        self.known = {"github.action_path": str(ROOT), "steps.python.outputs.python-path": python}
        for name, declared in ACTION["inputs"].items():
            assert name in inputs_of_step or "default" in declared, f"{name} is required"
            self.known[f"inputs.{name}"] = inputs_of_step.get(name, declared.get("default"))

    def value(self, text: str) -> str:
        """Evaluate the expressions in a text: names, and ``a || b``."""

        def evaluated(match: re.Match[str]) -> str:
            values = [str(self.known.get(name, "")) for name in match[1].split(" || ")]
            return next(filter(None, values), "")

        return re.sub(r"\$\{\{ (.+?) \}\}", evaluated, text)

    def run(self) -> int:
        """Run the steps until one fails; return its exit code."""
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                continue
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]  # texts of others reach a shell in its environment only
            output = self.folder / "output"
            output.write_text("")
            env = {name: self.value(text) for name, text in step["env"].items()}
            files = {"GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": self.folder / "summary"}
            script = self.folder / "step.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                env={
                    **os.environ,
                    **env,
                    "RUNNER_TEMP": str(self.folder / "temp folder"),
                    **{name: str(path) for name, path in files.items()},
                },
                capture_output=True,
                text=True,
                check=False,
                cwd=self.folder,
            )
            self.printed += done.stdout
            self.errors += done.stderr
            for line in output.read_text().splitlines():
                name, _, value = line.partition("=")
                self.known[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode
        return 0

    def outputs(self) -> dict[str, str]:
        return {name: self.value(output["value"]) for name, output in ACTION["outputs"].items()}


@pytest.mark.parametrize(("new", "rules", "code", "verdict"), [
    ("worse", {"policy": "gate.toml"}, 1, "fail"),
    ("new", {"metric": "pass@1", "margin": "0.001", "inconclusive": "pass",
             "options": "--seed 3 --shared"}, 0, "inconclusive"),
])  # fmt: skip
def test_the_steps_give_the_verdict(gate_files, tmp_path, new, rules, code, verdict) -> None:
    rules = rules | ({"policy": str(gate_files / "gate.toml")} if "policy" in rules else {})
    data = {"new": str(gate_files / f"{new}.csv"), "baseline": str(gate_files / "main.csv")}
    runner = Runner(tmp_path, **data, **rules)
    assert runner.run() == code, runner.errors
    outputs = runner.outputs()
    saved = json.loads(Path(outputs["json"]).read_text())
    assert outputs["verdict"] == saved["verdict"] == verdict
    assert float(outputs["probability"]) == saved["probability"]
    summary = (tmp_path / "summary").read_text()
    assert f"{verdict.upper()}: in pass@1 on these questions" in summary
    assert Path(outputs["markdown"]).read_text() == summary
    assert summary in runner.printed
    assert f"installs {ROOT}" in runner.printed
    assert (f"::error::bayesatk gate: {verdict}" in runner.printed) == bool(code)
    assert ("::warning::" in runner.printed) == (rules.get("inconclusive") == "pass")


def test_what_is_no_gate_gives_no_verdict(gate_files, tmp_path) -> None:
    data = {"new": str(gate_files / "new.csv"), "baseline": str(gate_files / "main.csv")}
    runner = Runner(tmp_path, **data, requirement="bayesatk==9")
    assert runner.run() == 2
    assert "give either --policy FILE or --metric and --margin" in runner.errors
    assert "installs bayesatk==9" in runner.printed
    assert runner.outputs()["verdict"] == ""
    assert not (tmp_path / "summary").exists()


def test_every_input_is_used() -> None:
    text = (ROOT / "action.yml").read_text()
    assert all(f"inputs.{name} " in text for name in ACTION["inputs"])
