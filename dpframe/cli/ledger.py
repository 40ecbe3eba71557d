"""``dpframe ledger create | show | answer | verify | export``."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpframe.errors import Arg, Call, InputError


def add(commands: Any) -> None:
    """Add the commands to the parser's."""
    ledger = commands.add_parser("ledger", help="make, read and check the file that keeps a budget")
    inner = ledger.add_subparsers(required=True, metavar="{create,show,answer,verify,export}")

    create = inner.add_parser("create", help="declare a budget in a new file, once")
    for name in ("eps", "delta", "delta-calls", "rho"):
        create.add_argument(f"--{name}", metavar="NUMBER", help="as in a session; 1/3 is read exactly")
    create.add_argument("--neighbors", help="add_remove (default) or replace_one")
    create.add_argument(
        "--unit", action="append", metavar="COLUMN", help="whom a row belongs to; repeat for several"
    )
    create.add_argument(
        "--contributions", metavar="K", help="any K rows are protected together, without a unit"
    )
    create.add_argument("--accountant", help="how charges add up (default union)")
    create.add_argument(
        "--order", metavar="NUMBER", help="of --accountant rdp (default: the best for the budget)"
    )
    create.add_argument("--per-scope", metavar="eps=0.1,delta=1e-8", help="a budget for each scope")
    create.add_argument("--window", metavar="30d", help="the budget is that of each window of this length")
    create.add_argument(
        "--lifetime", metavar="eps=10", help="with --window: a budget for all windows together"
    )
    create.add_argument("--anchor", metavar="PATH", help="where the anchor lies (default: beside the ledger)")
    create.set_defaults(command=_create)

    look = inner.add_parser("show", help="what was declared, what is spent, and the head")
    look.add_argument("--scope", help="also what this scope has spent")
    look.set_defaults(command=_show)
    answer = inner.add_parser(
        "answer", help="a stored answer by its request, as CSV; its input is not needed"
    )
    answer.add_argument("--request", required=True, metavar="ID", help="of a release file: PLAN/QUERY")
    answer.add_argument("--scope", help="the scope in which it was asked")
    answer.add_argument(
        "--output", metavar="FILE", help="a .csv or .parquet file (with its facts beside it) instead"
    )
    answer.set_defaults(command=_answer)
    check = inner.add_parser("verify", help="read everything and check it")
    check.set_defaults(command=_verify)
    export = inner.add_parser("export", help="every charge as a row, as CSV (or parquet, with --output)")
    export.add_argument("--output", metavar="FILE", help="a .csv or .parquet file instead of standard output")
    export.set_defaults(command=_export)
    for p in (create, look, answer, check, export):
        p.add_argument("path", metavar="budget.db")
    for p in (look, answer, check, export):
        p.add_argument(
            "--anchor", metavar="PATH", help="where the anchor lies now, if not where it was declared"
        )


def _create(args: argparse.Namespace) -> int:
    from dpframe.ledger.book import Ledger

    given = {
        **{
            name: _number(getattr(args, name), name)
            for name in ("eps", "delta", "delta_calls", "rho", "order")
        },
        "neighbors": args.neighbors,
        "unit": args.unit,
        "contributions": _whole(args.contributions),
        "accountant": args.accountant,
        "per_scope": _part(args.per_scope, "per_scope"),
        "window": args.window,
        "lifetime": _part(args.lifetime, "lifetime"),
        "anchor": args.anchor,
    }
    ledger = Ledger.create(args.path, **{k: v for k, v in given.items() if v is not None})
    print(f"made {ledger!r}, head {ledger.head.sequence} {ledger.head.hash}")
    ledger.close()
    return 0


def _show(args: argparse.Namespace) -> int:
    from dpframe.ledger.book import Ledger, window_text

    ledger = Ledger(args.path, anchor=args.anchor)
    print(repr(ledger))
    for domain, (budget, state) in ledger.state(args.scope).items():
        spent, left = (c.text(zeros=True, rho=True) for c in (budget.spent(state), budget.remaining(state)))
        print(f"{domain}: spent {spent}; left {left}")
    entries = ledger.entries(args.scope)
    print(f"charges: {len(entries)}" + (f", the last at {entries[-1].time.isoformat()}" if entries else ""))
    if ledger.window is not None:
        print(f"window: {' '.join(window_text(ledger).split())}")
    print(f"head: {ledger.head.sequence} {ledger.head.hash}")
    ledger.close()
    return 0


def _answer(args: argparse.Namespace) -> int:
    from dpframe.ledger.book import Ledger
    from dpframe.release.files import table_bytes

    ledger = Ledger(args.path, anchor=args.anchor)
    found = ledger.answer(args.request, scope=args.scope)
    ledger.close()
    if args.output is None:
        print(table_bytes(found.table, ".csv").decode(), end="")
    else:
        found.write(args.output)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from dpframe.ledger.book import Ledger

    ledger = Ledger(args.path, anchor=args.anchor)
    ledger.verify()
    print(f"whole: {len(ledger.entries())} charges, head {ledger.head.sequence} {ledger.head.hash}")
    ledger.close()
    return 0


def _export(args: argparse.Namespace) -> int:
    from dpframe.base.files import writable, write_atomic
    from dpframe.ledger.book import Ledger
    from dpframe.release.files import table_bytes

    ledger = Ledger(args.path, anchor=args.anchor)
    table = ledger.export()
    ledger.close()
    if args.output is None:
        print(table.write_csv(), end="")
    else:
        writable(args.output)
        write_atomic(args.output, table_bytes(table, args.output))
    return 0


def _number(text: str | None, name: str) -> Fraction | Decimal | None:
    """The exact number that was typed: a decimal, or a fraction such as 1/3."""
    if text is None:
        return None
    try:
        return Fraction(text) if "/" in text else Decimal(text)
    except (ArithmeticError, ValueError):
        raise InputError(Arg(name, text), " is no number.", hint=Arg(name, 0.5)) from None


def _whole(text: str | None) -> int | str | None:
    """The whole number that was typed; other text as it stands, to be refused where it is read."""
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,20}", text) else text


def _part(text: str | None, name: str) -> dict[str, Fraction | Decimal | None] | None:
    """``eps=0.1,delta=1e-8`` as a budget."""
    if text is None:
        return None
    pairs = [p.partition("=") for p in text.split(",")]
    if not all(sign and value for _, sign, value in pairs):
        raise InputError(Arg(name, text), " is no budget.", hint=Arg(name, Call("dict", eps=0.1, delta=1e-8)))
    return {k.strip().replace("-", "_"): _number(v.strip(), k.strip()) for k, _, v in pairs}
