"""The command line: ``dpframe plan | run | ledger | audit | demo``. Messages are single lines and hold no data.

Exit codes, for schedulers:

==== ==========================================================================================
0    done
1    an error inside dpframe; its name is printed and its words are withheld
2    wrong arguments, or something wrong in the release file (nothing was spent)
3    a budget does not allow the next query (what was released before stands, and is on disk)
4    the ledger can't be trusted or written (nothing was released)
5    failed while releasing or writing: the charge stands; what failed in the engine is charged again
6    the plan is not the one that was approved (nothing was spent)
7    an audit found a figure that is not as it must be
8    a file that is to be read is not there yet (nothing was spent; run again later)
130  interrupted
==== ==========================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TextIO

import polars as pl

from dpframe._version import __version__
from dpframe.accounting.events import least
from dpframe.base.progress import Progress
from dpframe.budget_plans.budget_plan import BudgetPlan
from dpframe.budget_plans.wording import IN_COMMAND, IN_RUN
from dpframe.cli import ledger as ledger_commands
from dpframe.errors import (
    Arg,
    BudgetExceeded,
    DPError,
    InputError,
    LedgerError,
    MechanismError,
    ReleaseFailed,
    message,
)
from dpframe.release.release import Release

DONE, INTERNAL, WRONG, EXCEEDED, LEDGER, FAILED, NOT_APPROVED, FLAGGED, NOT_THERE = range(9)
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit code; see the module's table.
    """
    args = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(), _any_text():
            warnings.showwarning = partial(_warning, args.words)  # one line, not two with a line of source
            code: int = args.command(args)
            if sys.stdout is not None:
                sys.stdout.flush()
        return code
    except BudgetExceeded as e:
        return _stop(EXCEEDED, args.words(e))
    except LedgerError as e:
        return _stop(LEDGER, args.words(e))
    except (ReleaseFailed, _Unfinished) as e:
        return _stop(FAILED, args.words(e))
    except BrokenPipeError:  # whoever reads has read enough
        _let_go()
        return DONE
    except OSError as e:  # of a file that dpframe opened; the operating system's words hold no cell
        if e.filename is None:
            _let_go()
        return _stop(FAILED, f"{e.strerror}: {e.filename or 'a file'}. Hint: run again when this is mended")
    except (DPError, TypeError) as e:
        return _stop(NOT_THERE if getattr(e, "missing", False) else WRONG, args.words(e))
    except KeyboardInterrupt:
        return _stop(INTERRUPTED, "interrupted; run again to go on")
    except Exception as e:  # its words may hold cells
        return _stop(INTERNAL, f"{type(e).__name__} inside dpframe {__version__}; its words are withheld")


class _Unfinished(DPError):
    """A run that had begun to spend met what its check should have refused."""


@contextlib.contextmanager
def _any_text() -> Iterator[None]:
    """Whatever is printed can be printed: what a terminal's encoding lacks is escaped."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    before = [s.errors for s in streams]
    for s in streams:
        s.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for s, errors in zip(streams, before):
            with contextlib.suppress(OSError, ValueError):
                s.reconfigure(errors=errors)


def _let_go() -> None:
    """Nobody reads what is printed: what is left in the buffer must not fail again when the process ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dpframe",
        description="Differentially private releases from a file that says what to release.",
        epilog="Exit codes: 0 done, 1 internal error, 2 wrong arguments or file, 3 budget exceeded, 4 ledger"
        " fault, 5 failed while releasing, 6 not the approved plan, 7 an audit failed, 8 an input is not there yet,"
        " 130 interrupted.",
    )
    parser.set_defaults(words=IN_COMMAND.message)
    parser.add_argument("--version", action="version", version=f"dpframe {__version__}")
    commands = parser.add_subparsers(required=True, metavar="{plan,run,ledger,audit,demo}")

    plan = commands.add_parser("plan", help="what a release file would cost and how exact it would be")
    run = commands.add_parser("run", help="release what a file asks for, and write its outputs")
    for p in (plan, run):
        p.add_argument("file", metavar="release.toml")
        p.add_argument("--scope", help="the ledger's scope; stands for {scope} in the file's paths")
        p.set_defaults(words=IN_RUN.message)
    plan.set_defaults(command=_plan)
    run.add_argument("--approved", metavar="FINGERPRINT", help="refuse unless the plan has this fingerprint")
    run.set_defaults(command=_run)

    ledger_commands.add(commands)
    audit = commands.add_parser("audit", help="measure what the package promises, on made-up data")
    audit.add_argument("--size", default="medium", help="small, medium (default) or full")
    audit.add_argument("--figures", nargs="+", type=int, metavar="N", help="of 1 2 3 4 7 8 9 (default: all)")
    audit.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)"
    )
    audit.set_defaults(command=_audit)
    demo = commands.add_parser("demo", help="the main job on public data (extra: dpframe[demo])")
    demo.set_defaults(command=_demo)
    return parser


# ---- plan and run ----


def _plan(args: argparse.Namespace) -> int:
    plan = BudgetPlan.from_release_file(args.file, scope=args.scope)
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=240,
        fmt_str_lengths=120,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="ASCII_BORDERS_ONLY_CONDENSED",
    ):
        print(plan.table())
    print(f"total {plan.session.budget.text(zeros=True)}")
    if plan.session.ledger is not None:
        states = plan.session.ledger.state(plan.scope).values()
        left = least([budget.remaining(state) for budget, state in states])
        print(f"left in the ledger {left.text(zeros=True, rho=True)}")
    print(f"fingerprint {plan.fingerprint}")
    return DONE


@contextlib.contextmanager
def _session_required() -> Iterator[None]:
    """No call may go to the session without a limit; whoever called ``main`` has their own rule again afterwards."""
    before = os.environ.get("DPFRAME_REQUIRE_SESSION")
    os.environ["DPFRAME_REQUIRE_SESSION"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["DPFRAME_REQUIRE_SESSION"]
        else:
            os.environ["DPFRAME_REQUIRE_SESSION"] = before


@_session_required()
def _run(args: argparse.Namespace) -> int:
    plan = BudgetPlan.from_release_file(args.file, scope=args.scope)
    lost = next((n for n, q in plan.queries.items() if not q.outputs), None)
    if lost is not None:
        raise InputError(
            f"{args.file}: the query {lost!r} has no outputs, so its answer would be lost.",
            hint=Arg("outputs", "n.csv"),
        )
    if args.approved is not None and args.approved != plan.fingerprint:
        return _stop(
            NOT_APPROVED,
            f"{args.file}: this plan is {plan.fingerprint}, approved is {args.approved}. Hint: dpframe plan {args.file}",
        )
    bar = Progress(plan.queries)
    unsaid: list[OSError] = []
    told: list[str] = []

    def say(text: str) -> None:
        """What is printed never decides what is released: a run goes on where nobody reads."""
        try:
            if not unsaid:
                print(text, flush=True)
        except OSError as e:
            unsaid.append(e)
            _let_go()

    def tell(name: str, release: Release) -> None:
        bar.clear()
        told.append(name)
        say(_released(plan, name, release))

    try:
        plan.run(progress=bar.show, released=tell)
    except BaseException as e:
        bar.clear()
        charged = plan.charged
        for name in plan.queries if charged else ():
            if name not in told:
                what = "not written" if name in plan.releases else "not released"
                paid = f"charged {charged[name].text()}" if name in charged else "not asked"
                say(f"{what} {name!r}: {paid}")
        if charged and isinstance(e, InputError | MechanismError | TypeError):
            raise _Unfinished(message(e)) from None
        raise
    finally:
        bar.clear()
    if unsaid and not isinstance(unsaid[0], BrokenPipeError):
        return _stop(DONE, f"all was released and written, but not all was printed: {unsaid[0].strerror}")
    return DONE


def _released(plan: BudgetPlan, name: str, release: Release) -> str:
    files = ", ".join(p.replace("{scope}", plan.scope or "") for p in plan.queries[name].outputs)
    if release.released_at is not None:
        return f"replayed {name!r}: free, drawn {release.released_at.isoformat(' ', 'seconds')}, {files}"
    return f"released {name!r}: {release.cost.text()}, {files}"


def _audit(args: argparse.Namespace) -> int:
    from dpframe.audit.run import Figure, line, run

    def tell(figure: Figure, seconds: float) -> None:
        print(f"{line(figure)} ({seconds:.1f} s)", flush=True)

    figures = run(args.size, args.figures, jobs=args.jobs, tell=tell)
    wrong = sum(not f.ok for f in figures)
    print(f"{len(figures)} figures, {wrong} not as wanted")
    return FLAGGED if wrong else DONE


def _demo(args: argparse.Namespace) -> int:
    from dpframe.cli import demo

    demo.main()
    return DONE


# ---- messages ----


def _stop(code: int, said: object) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(f"dpframe: {_line(said)}", file=sys.stderr, flush=True)
    return code


def _warning(
    words: Callable[[object], str],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    with contextlib.suppress(OSError, ValueError):  # it may come after a charge
        print(f"dpframe: warning: {_line(words(message))}", file=sys.stderr, flush=True)


def _line(message: object) -> str:
    return " ".join(str(message).split())
