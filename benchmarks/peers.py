"""dpframe beside other libraries for differential privacy: time, memory, lines of code, error.

    python benchmarks/peers.py                            all peers, all questions, 1 M rows
    python benchmarks/peers.py --peers dpframe,opendp     some of them
    python benchmarks/peers.py --rows 20000 --repeat 3    small

Every peer gets a virtual environment of its own, made in a folder of the system's temporary folder and kept for
the next run; what does not install or does not run is listed with the reason. What is asked is in
peer_settings.py, how each peer is asked in peers/<name>.py. Prints markdown tables; has no targets.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from peer_settings import QUESTIONS, visits

HERE = Path(__file__).resolve().parent
PEERS = ("dpframe", "opendp", "diffprivlib", "smartnoise", "pipelinedp", "tumult")
CACHE = Path(tempfile.gettempdir()) / f"dpframe-peers-{os.getuid()}"
Found = dict[str, Any]


class Unusable(Exception):
    """Why a peer cannot take part."""


def packages(peer: str) -> list[str]:
    """What a peer's snippets say that is to be installed; they cannot be imported before."""
    for statement in ast.parse((HERE / "peers" / f"{peer}.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "PACKAGES":
            return [*ast.literal_eval(statement.value)]
    raise ValueError(f"peers/{peer}.py has no PACKAGES")


def environment(peer: str) -> Path:
    """The Python of a peer's own environment, made unless it is there."""
    wanted = packages(peer)
    if wanted == ["."]:
        return Path(sys.executable)  # dpframe itself, as it is run here
    folder = CACHE / peer
    python, mark = folder / "bin" / "python", folder / "installed.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable("does not install: " + _last(done.stderr, "ERROR"))
    mark.write_text(json.dumps(wanted))
    return python


def versions(peer: str, python: Path) -> str:
    name = "dpframe" if packages(peer) == ["."] else packages(peer)[0].split("[")[0]
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    done = subprocess.run([python, "-c", code, name], capture_output=True, text=True, check=True)
    return f"{name} {done.stdout.strip()}"


def ask(peer: str, python: Path, question: str, data: Path, repeat: int, seconds: float) -> Found:
    """One question in a process of its own."""
    command = [python, HERE / "peer_runner.py", HERE / "peers" / f"{peer}.py", question, data]
    extra = {"PYSPARK_PYTHON": str(python), "PYTHONWARNINGS": "ignore"}
    if packages(peer) == ["."]:
        extra["PYTHONPATH"] = str(HERE.parent)
    else:
        extra["PYTHONPATH"] = ""
    done = subprocess.run(
        [*map(str, command), str(repeat), str(seconds)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | extra,
        cwd=data.parent,  # Spark leaves folders where it runs
    )
    if done.returncode:
        return {"refused": "fails: " + _last(done.stderr, "Error")}
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def _last(text: str, word: str) -> str:
    """The last line that has a word in it, without folders."""
    lines = [line.strip() for line in text.splitlines() if word in line] or text.strip().splitlines() or ["?"]
    return " ".join(w for w in lines[-1].split() if "/" not in w)[:200]


def row(peer: str, question: str, found: Found) -> str:
    if "refused" in found:
        return f"| {peer} | {question} | {found['refused']} | | | | | | |"
    count = f"{found['count_error']:.3g}" if "count_error" in found else ""
    keys = f"{found['keys']:.0f}" if "keys" in found else ""
    return (
        f"| {peer} | {question} | {found['first']:.3f} s | {found['again']:.4f} s | {found['peak']:.2f} GB"
        f" | {found['lines']} | {found['error']:.4g} | {count} | {keys} |"
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=lambda t: t.split(","), default=[*PEERS])
    parser.add_argument("--questions", type=lambda t: t.split(","), default=[*QUESTIONS])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--repeat", type=int, default=20, help="calls at most, over which errors are averaged"
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="no further call after these, from the third on"
    )
    o = parser.parse_args(argv)
    for given, known in ((o.peers, PEERS), (o.questions, QUESTIONS)):
        for name in given:
            if name not in known:
                parser.error(f"no {name!r}; there are {', '.join(known)}")
    print("| peer | question | first | again | peak | lines | error | error of counts | keys |")
    print("|---|---|---|---|---|---|---|---|---|")
    used = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "visits.npz"
        np.savez(data, **visits(o.rows))
        for peer in o.peers:
            try:
                python = environment(peer)
            except Unusable as e:
                used.append(f"{peer} {e}")
                continue
            used.append(versions(peer, python))
            for question in o.questions:
                print(row(peer, question, ask(peer, python, question, data, o.repeat, o.seconds)), flush=True)
    print(f"\n{o.rows:,} rows; {'; '.join(used)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
