"""Wrong calls: options, partitions, sessions, ledgers, budget plans, tradeoffs, advice, pictures."""

from __future__ import annotations

import dpframe as dp

Wrong, Law, Book = dp.InputError, dp.MechanismError, dp.LedgerError


def plan_of(df, **more):
    return dp.BudgetPlan(df, {"n": dp.count()}, **more)


# (call, class, what the message must name)
CALLS = {
    # ---- options ----
    "max_rows_no_unit": (lambda df: df.dp.count(eps=1, max_rows=3), Wrong, ["max_rows=", "unit='user_id'"]),
    "max_groups_no_unit": (
        lambda df: df.dp.groupby("city", keys=["a"], max_groups=2).count(eps=1),
        Wrong,
        ["max_groups=", "unit='user_id'"],
    ),
    "max_rows_grouped": (
        lambda df: df.dp.groupby("city", keys=["a"]).count(eps=1, max_rows=2),
        Wrong,
        ["max_rows=", "unit='user_id'"],
    ),
    "max_groups_half": (
        lambda df: df.dp.groupby("city", keys=["a"], max_groups=0.5).count(eps=1),
        Wrong,
        ["max_groups=0.5", "whole number"],
    ),
    "threshold_word": (
        lambda df: df.dp.groupby("city").count(eps=1, delta=1e-6, threshold="people"),
        Wrong,
        ["threshold='people'", "'units' or 'rows'"],
    ),
    "threshold_ungrouped": (
        lambda df: df.dp.count(eps=1, threshold="rows"),
        Wrong,
        ["threshold=", "leave it out"],
    ),
    "request_id_here": (lambda df: df.dp.count(eps=1, request_id="q"), Wrong, ["request_id=", "ledger"]),
    "request_id_number": (lambda df: df.dp.count(eps=1, request_id=7), Wrong, ["request_id=7", "text"]),
    "loss_word": (lambda df: df.dp.count(eps=1, loss="l2"), Wrong, ["loss='l2'", "'l1'"]),
    "loss_named": (
        lambda df: df.dp.count(eps=1, loss="l1", mechanism="laplace"),
        Wrong,
        ["loss=", "'laplace'"],
    ),
    "keys_of_keys": (lambda df: df.dp.groupby("city", keys=["a"]).keys(eps=1, delta=1e-6), Wrong, ["keys="]),
    "keys_no_delta": (lambda df: df.dp.groupby("city").keys(eps=1), Wrong, ["delta=1e-6"]),
    "rows_negative": (lambda df: df.dp.count(error=3, rows=-5), Wrong, ["rows=-5", "rows=1000"]),
    "mechanism_lookup": (lambda df: dp.mechanism("laplce"), Law, ["'laplce'", "'laplace'"]),
    "module_typo": (lambda df: dp.tradeof, AttributeError, ["'tradeof'", "'tradeoff'"]),
    "module_hist": (lambda df: dp.hist, AttributeError, ["'hist'", "dp.histogram"]),
    # ---- partitions ----
    "partition_no_keys": (lambda df: df.dp.partition_by("city", eps=1), Wrong, ["keys="]),
    "partition_no_cap": (lambda df: df.dp.partition_by("city", keys=["a"]), Wrong, ["eps=", "rho="]),
    "partition_both": (
        lambda df: df.dp.partition_by("city", keys=["a"], eps=1, rho=1),
        Wrong,
        ["eps=", "rho="],
    ),
    "partition_rho_delta": (
        lambda df: df.dp.partition_by("city", keys=["a"], rho=1, delta=1e-6),
        Wrong,
        ["delta=", "rho="],
    ),
    "partition_nothing": (lambda df: df.dp.partition_by(keys=["a"], eps=1), Wrong, ["at least one column"]),
    "partition_typo": (lambda df: df.dp.partition_by("ctiy", keys=["a"], eps=1), Wrong, ["'ctiy'", "'city'"]),
    # ---- sessions ----
    "session_delta": (lambda df: dp.Session(eps=1, delta=1), Wrong, ["delta=1", "less than 1"]),
    "session_neighbors": (
        lambda df: dp.Session(eps=1, neighbors="replace"),
        Wrong,
        ["'replace'", "'replace_one'"],
    ),
    "session_accountant": (
        lambda df: dp.Session(eps=1, delta=1e-6, accountant="zcpd"),
        Wrong,
        ["accountant='zcpd'", "'zcdp'"],
    ),
    "session_pld": (
        lambda df: dp.Session(eps=1, delta=1e-6, accountant="pld"),
        Wrong,
        ["accountant='pld'", "no filter", "report"],
    ),
    "session_pure_zcdp": (lambda df: dp.Session(eps=1, accountant="zcdp"), Wrong, ["'zcdp'", "delta=1e-6"]),
    "session_order": (lambda df: dp.Session(eps=1, delta=1e-6, order=3), Wrong, ["order=3", "rdp"]),
    "session_rho_delta": (lambda df: dp.Session(rho=1, delta=1e-6), Wrong, ["rho=", "delta_calls="]),
    "session_eps_rho": (lambda df: dp.Session(eps=1, rho=1), Wrong, ["eps=", "rho=", "not both"]),
    "session_delta_calls": (
        lambda df: dp.Session(eps=1, delta=1e-6, delta_calls=1e-5),
        Wrong,
        ["delta_calls=1e-05", "delta=1e-06"],
    ),
    "session_unit_number": (lambda df: dp.Session(eps=1, unit=3), TypeError, ["unit=", "int"]),
    "session_unit_twice": (lambda df: dp.Session(eps=1, unit=["a", "a"]), Wrong, ["unit=['a', 'a']", "once"]),
    "session_user": (lambda df: dp.Session(eps=1, user="a"), TypeError, ["'user'", "unit="]),
    "session_scope": (lambda df: dp.Session(eps=1, scope="a"), Wrong, ["scope='a'", "ledger="]),
    "session_strict": (lambda df: dp.Session(eps=1, strict="yes"), Wrong, ["strict='yes'", "True or False"]),
    "session_max_rows": (lambda df: dp.Session(eps=1, max_rows=2), Wrong, ["max_rows", "unit="]),
    "session_no_ledger": (
        lambda df: dp.Session(ledger="nowhere.db"),
        Book,
        ["nowhere.db", "dp.Ledger.create"],
    ),
    "session_ledger_number": (lambda df: dp.Session(ledger=3), TypeError, ["path", "int"]),
    "split_zero": (lambda df: dp.Session(eps=1).split(0), Wrong, ["split", "0"]),
    "split_more": (lambda df: dp.Session(eps=1).split({"a": 0.7, "b": 0.7}), Wrong, ["1.4", "at most 1"]),
    "split_by": (lambda df: dp.Session(eps=1).split(2, by="eps_"), Wrong, ["by='eps_'", "'rho'"]),
    "report_word": (lambda df: dp.Session(eps=1).report(accountant="renyi"), Wrong, ["'renyi'", "'rdp'"]),
    "report_delta": (lambda df: dp.Session(eps=1).report(delta=1e-6), Wrong, ["delta=", "accountant="]),
    "label_nowhere": (lambda df: dp.Session(eps=1)["n"], KeyError, ["'n'", "s.releases"]),
    "last_of_nothing": (lambda df: dp.Session(eps=1).last, Wrong, ["Nothing has been released"]),
    # ---- ledgers ----
    "ledger_no_budget": (lambda df: dp.Ledger.create("nowhere.db"), Wrong, ["eps=", "rho="]),
    "ledger_positional": (lambda df: dp.Ledger.create("nowhere.db", 1), TypeError, ["create", "eps="]),
    "ledger_window": (
        lambda df: dp.Ledger.create("nowhere.db", eps=1, window="3 moons"),
        Wrong,
        ["'3 moons'", "30d"],
    ),
    "ledger_per_scope": (
        lambda df: dp.Ledger.create("nowhere.db", eps=1, per_scope=0.1),
        Wrong,
        ["per_scope=0.1"],
    ),
    "ledger_epsilon": (
        lambda df: dp.Ledger.create("nowhere.db", epsilon=1),
        TypeError,
        ["'epsilon'", "eps="],
    ),
    "ledger_unit": (lambda df: dp.Ledger.create("nowhere.db", eps=1, unit=3), TypeError, ["unit=", "int"]),
    "ledger_missing": (lambda df: dp.Ledger("nowhere.db"), Book, ["nowhere.db", "does not exist"]),
    # ---- budget plans ----
    "plan_allocation": (lambda df: plan_of(df, eps=1, allocation="evenly"), Wrong, ["'evenly'", "'even'"]),
    "plan_no_queries": (lambda df: dp.BudgetPlan(df, {}, eps=1), TypeError, ["queries="]),
    "plan_queries_list": (
        lambda df: dp.BudgetPlan(df, [dp.count()], eps=1),
        TypeError,
        ["queries=", "mapping"],
    ),
    "plan_query_word": (lambda df: dp.BudgetPlan(df, {"n": "count"}, eps=1), TypeError, ["'n'", "str"]),
    "plan_no_budget": (lambda df: plan_of(df), Wrong, ["budget", "eps=1"]),
    "plan_epsilon": (lambda df: plan_of(df, epsilon=1), TypeError, ["'epsilon'", "eps="]),
    "plan_source_typo": (
        lambda df: dp.BudgetPlan({"people": df}, {"n": dp.query(dp.count(), source="peple")}, eps=1),
        Wrong,
        ["query 'n'", "'peple'", "'people'"],
    ),
    "plan_column_typo": (
        lambda df: dp.BudgetPlan(df, {"n": dp.clip_mean("incom", bounds=(0, 1))}, eps=1),
        Wrong,
        ["query 'n'", "'incom'", "'income'"],
    ),
    "plan_ledger_name": (lambda df: plan_of(df, eps=1, ledger="b.db"), Wrong, ["ledger=", "name="]),
    "plan_share": (
        lambda df: dp.BudgetPlan(df, {"n": dp.query(dp.count(), share=2)}, eps=1),
        Wrong,
        ["share=2", "at most 1"],
    ),
    "plan_progress": (lambda df: plan_of(df, eps=1).run(progress="bar"), TypeError, ["progress=", "str"]),
    "plan_output": (
        lambda df: dp.BudgetPlan(df, {"n": dp.query(dp.count(), outputs=["n.xlsx"])}, eps=1),
        Wrong,
        ["n.xlsx", ".parquet"],
    ),
    "plan_error_rows": (
        lambda df: dp.BudgetPlan(
            df, {"m": dp.query(dp.clip_mean("income", bounds=(0, 1)), error=0.1)}, eps=1
        ),
        Wrong,
        ["query 'm'", "rows="],
    ),
    "query_nothing": (lambda df: dp.query(), TypeError, ["statistic", "dp.count()"]),
    "query_word": (lambda df: dp.query("count"), TypeError, ["str", "dp.count()"]),
    "file_missing": (lambda df: dp.BudgetPlan.from_release_file("nowhere.toml"), Wrong, ["nowhere.toml"]),
    # ---- before spending, and after ----
    "tradeoff_frame": (lambda df: dp.tradeoff(df, eps=[1]), TypeError, ["df.dp.plan"]),
    "tradeoff_nothing": (lambda df: dp.tradeoff(df.dp.plan.count(eps=1)), Wrong, ["eps=", "rho="]),
    "tradeoff_text": (lambda df: dp.tradeoff(df.dp.plan.count(eps=1), eps="1"), Wrong, ["eps='1'", "list"]),
    "tradeoff_zero": (lambda df: dp.tradeoff(df.dp.plan.count(eps=1), eps=[1, 0]), Wrong, ["eps[1]=0"]),
    "tradeoff_rows": (
        lambda df: dp.tradeoff(df.dp.plan.clip_mean("income", bounds=(0, 1), eps=1), eps=[1]),
        Wrong,
        ["'income_mean'", "rows="],
    ),
    "tradeoff_own": (
        lambda df: dp.tradeoff(df.dp.plan.agg(n=dp.count(eps=1), eps=1), eps=[1]),
        Wrong,
        ["epsilons of their own", "eps="],
    ),
    "tradeoff_keys": (
        lambda df: dp.tradeoff(df.dp.plan.groupby("city").keys(eps=1, delta=1e-6), eps=[1]),
        Wrong,
        ["no error"],
    ),
    "explain_rows": (lambda df: df.dp.plan.count(eps=1).explain(rows=-1), Wrong, ["rows=-1"]),
    "explain_relative": (
        lambda df: df.dp.plan.count(eps=1).explain(relative_to="3"),
        Wrong,
        ["relative_to='3'"],
    ),
    "advise_nothing": (lambda df: dp.advise(), Wrong, ["eps=", "rho="]),
    "advise_question": (lambda df: dp.advise(eps=1, question="avg"), Wrong, ["'avg'", "'mean'"]),
    "advise_releases": (lambda df: dp.advise(eps=1, releases=1.5), Wrong, ["releases=1.5", "whole"]),
    "consistent_frames": (lambda df: dp.consistent(df, df), TypeError, ["consistent", "released"]),
    "ratio_numbers": (lambda df: dp.ratio(1, 2), TypeError, ["ratio", "int"]),
    "conversion_rho": (lambda df: dp.eps_of_rho(-1, 1e-6), Wrong, ["rho=-1"]),
    "conversion_delta": (lambda df: dp.rho_of_eps(1, 2), Wrong, ["delta=2"]),
    "frame_of_list": (lambda df: dp.frame([df]), TypeError, ["dp.frame", "list", "connection.table("]),
    # ---- habits of pandas ----
    "crosstab": (
        lambda df: df.dp.crosstab("city", "age"),
        AttributeError,
        ["crosstab", "groupby('a', 'b', keys="],
    ),
    "pivot_table": (
        lambda df: df.dp.pivot_table("age"),
        AttributeError,
        ["pivot_table", "groupby('a', 'b', keys="],
    ),
    "groupby_by": (lambda df: df.dp.groupby(by="city"), TypeError, ["'by'", "groupby('city', keys=[...])"]),
    "count_by": (
        lambda df: df.dp.count(groupby="city", eps=1),
        TypeError,
        ["'groupby'", "groupby('city', keys="],
    ),
    "error_without_rows": (
        lambda df: df.dp.plan.clip_mean("income", bounds=(0, 1), error=0.25),
        Wrong,
        ["error=0.25, rows=10000"],
    ),
    "unit_not_in_the_frame": (
        lambda df: df.dp.count(eps=1, max_rows=1, session=dp.Session(eps=1, unit="who")),
        Wrong,
        ["The session protects who", "no column 'who'", "keep 'who' in the frame"],
    ),
    # ---- what is not a question of a frame: plans, sessions, pictures, conversions ----
    "quantile_without_bounds": (
        lambda df: df.dp.quantile("income", 0.9, eps=1),
        Wrong,
        ["bounds=", "df.dp.quantile('income', 0.9, bounds=(0, 100), eps=0.5)"],
    ),
    "wmean_without_bounds": (
        lambda df: df.dp.clip_wmean("income", weights="age", eps=1),
        Wrong,
        ["df.dp.clip_wmean('income', weights='age'"],
    ),
    "weights_typo": (
        lambda df: df.dp.clip_wmean("income", weights="aeg", bounds=(0, 1), eps=1),
        Wrong,
        ["'aeg'", "Did you mean 'age'"],
    ),
    "unit_typo": (
        lambda df: df.dp.count(eps=1, max_rows=1, session=dp.Session(eps=1, unit="citi")),
        Wrong,
        ["'citi'", "'city'"],
    ),
    "vector_typo_near": (
        lambda df: df.dp.vector_sum(["income", "agee"], norm=1, eps=1),
        Wrong,
        ["'agee'", "Did you mean 'age'"],
    ),
    "explain_typo": (
        lambda df: df.dp.plan.count(eps=1).explain(row=100),
        TypeError,
        ["explain", "'row'", "Did you mean 'rows'"],
    ),
    "explain_position": (
        lambda df: df.dp.plan.count(eps=1).explain(100),
        TypeError,
        ["explain", "position", "plan.explain(rows=10_000)"],
    ),
    "release_argument": (
        lambda df: df.dp.plan.count(eps=1).release(1),
        TypeError,
        ["release takes nothing", "plan.release()"],
    ),
    "tradeoff_epsilon": (
        lambda df: dp.tradeoff(df.dp.plan.count(eps=1), epsilon=[1]),
        TypeError,
        ["tradeoff", "'epsilon'", "eps="],
    ),
    "tradeoff_no_plan": (lambda df: dp.tradeoff(), TypeError, ["tradeoff", "plan", "dp.tradeoff(plan, eps="]),
    "plan_attribute": (
        lambda df: df.dp.plan.count(eps=1).explian(),
        AttributeError,
        ["BoundPlan", "'explian'", "'explain'"],
    ),
    "session_attribute": (
        lambda df: dp.Session(eps=1).remainig,
        AttributeError,
        ["Session", "'remainig'", "Did you mean 'remaining'"],
    ),
    "report_typo": (
        lambda df: dp.Session(eps=1).report(acountant="pld"),
        TypeError,
        ["report", "'acountant'", "'accountant'"],
    ),
    "split_typo": (lambda df: dp.Session(eps=1).split(share=2), TypeError, ["split", "'share'", "'shares'"]),
    "budget_plan_attribute": (
        lambda df: dp.BudgetPlan(df, {"n": dp.count()}, eps=1).runn(),
        AttributeError,
        ["BudgetPlan", "'runn'", "Did you mean 'run'"],
    ),
    "query_group_by": (
        lambda df: dp.query(dp.count(), group_by="city"),
        TypeError,
        ["query", "'group_by'", "'groupby'"],
    ),
    "module_attribute": (lambda df: dp.Sesion(eps=1), AttributeError, ["'Sesion'", "'Session'"]),
    "testing_attribute": (
        lambda df: dp.testing.check_mechanisms,
        AttributeError,
        ["dp.testing", "Did you mean 'check_mechanism'"],
    ),
    "audit_attribute": (
        lambda df: dp.audit.black_bok,
        AttributeError,
        ["dp.audit", "Did you mean 'black_box'"],
    ),
    "public_nothing": (lambda df: dp.public(), TypeError, ["public", "values", "dp.public(codebook"]),
    "frame_nothing": (lambda df: dp.frame(), TypeError, ["frame", "obj", "dp.frame(df)"]),
    "conversion_typo": (lambda df: dp.eps_of_rho(1, dleta=1e-6), TypeError, ["'dleta'", "'delta'"]),
    "conversion_short": (lambda df: dp.rho_of_eps(1), TypeError, ["rho_of_eps", "delta", "(1, 1e-6)"]),
    "ratio_typo": (lambda df: dp.ratio(1, c=2), TypeError, ["ratio", "'c'"]),
    "mechanism_nothing": (lambda df: dp.mechanism(), TypeError, ["name", "dp.mechanism('laplace')"]),
}
