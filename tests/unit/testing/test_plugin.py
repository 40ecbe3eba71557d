"""Plug-ins: the example package is installed beside dpframe, without a network, and used from a fresh process."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "plugin_example"
ROOT = pathlib.Path(__file__).parents[3]
FRAME = """
import polars as pl
import dpframe as dp
df = pl.DataFrame({"x": [1.0] * 1000})
"""


def install(target, name, entries, **modules):
    """What an installer leaves behind: the modules, and a dist-info with its metadata and entry points."""
    target.mkdir(exist_ok=True)
    info = target / f"{name.replace('-', '_')}-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    lines = [f"{key} = {value}\n" for key, value in entries.items()]
    (info / "entry_points.txt").write_text("[dpframe.mechanisms]\n" + "".join(lines))
    for module, text in modules.items():
        (target / f"{module}.py").write_text(text)
    return target


def install_example(target):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    declared = project["project"]["entry-points"]["dpframe.mechanisms"]
    install(target, project["project"]["name"], declared)
    for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]:
        shutil.copy(EXAMPLE / path, target / path)
    return target


def run(code, *targets):
    """What ``code`` prints in a fresh process that has ``targets`` installed."""
    path = os.pathsep.join(map(str, (*targets, ROOT)))
    env = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FRAME + code], env=env, cwd="/", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refusal(name, *targets):
    """The message of the MechanismError that asking for ``name`` raises."""
    code = f"""
try:
    df.dp.count(eps=1, mechanism={name!r})
except dp.MechanismError as e:
    print(e)
else:
    print("no error")
"""
    return run(code, *targets)


def test_the_example_is_used_by_name_and_charged(tmp_path):
    code = """
import sys
assert "triple_laplace" in dp.mechanisms()
assert "dpframe_example_plugin" not in sys.modules  # loaded when it is asked for
with dp.Session(eps=2) as s:
    plan = df.dp.plan.count(eps=1, mechanism="triple_laplace")
    noise = plan.plan.pieces[0].noise
    assert float(noise.scale) == 3.0, noise
    assert noise.std > 2.9 * dp.mechanism("laplace").calibrate(noise.scale / 3, 1, dp_target).std
    answers = [df.dp.count(eps=0.1, mechanism="triple_laplace") for _ in range(10)]
    assert all(0 < a < 2500 for a in answers), answers  # b = 30: beyond by a chance of e**-33
    assert "dpframe_example_plugin" in sys.modules
    print(round(float(s.report()["eps"].sum()), 9))
"""
    setup = "from fractions import Fraction\nfrom dpframe.mechanisms.base import Target\ndp_target = Target(Fraction(1))\n"
    assert run(setup + code, install_example(tmp_path / "site")) == "1.0"


def test_without_the_package_the_name_is_unknown():
    assert "There is no mechanism 'triple_laplace'" in refusal("triple_laplace")


def test_the_example_passes_every_check_of_an_author(tmp_path):
    code = """
from dpframe.testing.mechanisms import check_mechanism
checked = check_mechanism("triple_laplace", draws=20_000)
assert checked.points >= 200, checked
print("passed")
"""
    assert run(code, install_example(tmp_path / "site")) == "passed"


@pytest.mark.parametrize(
    ("module", "entry", "mismatch"),
    [
        ("", "broken_plugin:Gone", "has no attribute 'Gone'"),
        ("", "broken_plugin_missing:Law", "No module named 'broken_plugin_missing'"),
        ("raise RuntimeError('half a wheel')", "broken_plugin:Law", "RuntimeError: half a wheel"),
        (
            "class Law:\n    name = 'broken'\n    def calibrate(self, s, moving, t): ...",
            "broken_plugin:Law",
            "lacks: norm",
        ),
        ("class Law:\n    name = 'broken'\n    norm = 'L1'", "broken_plugin:Law", "lacks: calibrate"),
        (
            "class Law:\n    name = 'broken'\n    norm = 'L3'\n    def calibrate(self, s, moving, t): ...",
            "broken_plugin:Law",
            "norm 'L3'",
        ),
    ],
    ids=["no_class", "no_module", "fails", "no_norm", "no_calibrate", "wrong_norm"],
)
def test_a_broken_plugin_is_reported_by_plugin_name_and_mismatch(tmp_path, module, entry, mismatch):
    site = install(tmp_path / "site", "broken-plugin", {"broken": entry}, broken_plugin=module)
    said = refusal("broken", site)
    assert repr(entry) in said
    assert "'broken'" in said
    assert mismatch in said


def test_a_broken_plugin_leaves_the_others_alone(tmp_path):
    site = install(tmp_path / "site", "broken-plugin", {"broken": "broken_plugin:Gone"})
    example = install_example(tmp_path / "example")
    code = """
assert {"broken", "triple_laplace", "laplace"} <= set(dp.mechanisms())
with dp.Session(eps=2):
    df.dp.count(eps=1, mechanism="triple_laplace")
    df.dp.count(eps=1)
print("fine")
"""
    assert run(code, site, example) == "fine"


def test_a_law_that_under_noises_is_refused_at_its_first_use(tmp_path):
    module = """
import dpframe as dp
class Law:
    name, norm = "thrifty", "L1"
    def calibrate(self, sensitivity, moving, target):
        return dp.mechanism("laplace").calibrate(sensitivity / 2, moving, target)
"""
    site = install(tmp_path / "site", "thrifty-plugin", {"thrifty": "thrifty:Law"}, thrifty=module)
    said = refusal("thrifty", site)
    assert "'thrifty'" in said
    assert "eps=2" in said
    assert "refused" in said


def test_two_plugins_for_one_name_are_both_named(tmp_path):
    example = install_example(tmp_path / "example")
    other = install(
        tmp_path / "other", "other-plugin", {"triple_laplace": "other_plugin:Law"}, other_plugin=""
    )
    said = refusal("triple_laplace", example, other)
    assert "'triple_laplace'" in said
    assert "'dpframe_example_plugin:TripleLaplace'" in said
    assert "'other_plugin:Law' (package other-plugin)" in said


def test_a_plugin_can_not_take_a_built_in_name(tmp_path):
    """The built-in law is used; a plug-in's decorator under its name is refused."""
    module = """
import dpframe as dp
@dp.register_mechanism("laplace")
class Law:
    name, norm = "laplace", "L1"
    def calibrate(self, sensitivity, moving, target): ...
"""
    entries = {"laplace": "taker:Law", "taker": "taker:Law"}
    site = install(tmp_path / "site", "taker-plugin", entries, taker=module)
    assert run('print(type(dp.mechanism("laplace")).__module__)', site) == "dpframe.mechanisms.laplace"
    said = refusal("taker", site)
    assert "'taker:Law'" in said
    assert "wants the name 'laplace'" in said
