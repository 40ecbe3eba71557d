# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
PIP = python -m pip install -q --disable-pip-version-check
LEDGER = tests/unit/ledger tests/system/test_nightly.py

.PHONY: demo test test-pandas3 test-pandas2 lint docs bench audit audit-ledger audit-engines audit-rule audit-tests planted clean

demo: .venv-demo/ready
	.venv-demo/bin/python -m dpframe demo

# The whole suite. Every part runs, whatever the parts before it say; at the end it fails if any of them did.
test: .venv/ready .venv-pandas2/ready
	@failed=; for part in lint docs test-pandas3 test-pandas2; do \
	  $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

# Every test, and every example in docstrings and pages.
test-pandas3: .venv/ready
	.venv/bin/python -m pytest -n 2 --dist loadgroup

# Tests in which a pandas frame can occur: no other can come out differently with another pandas.
test-pandas2: .venv-pandas2/ready
	.venv-pandas2/bin/python -m pytest -n 2 --dist loadgroup --only-pandas tests

lint: .venv/ready .venv-pandas2/ready
	.venv/bin/ruff check --no-cache .
	.venv/bin/ruff format --no-cache --check .
	.venv/bin/lint-imports --no-cache
	.venv/bin/mypy

# The documentation as a site in build/docs. A link or a name that leads nowhere fails it; nothing is fetched.
docs: .venv/ready
	.venv/bin/python -m sphinx -q -E -n -W --keep-going -b html docs build/docs

bench: .venv/ready
	.venv/bin/python benchmarks/run.py

# What the package promises, measured: a table of figures, at full size (the suite runs it at the smallest), the planted
# faults, and the ledger's trials at the suite's size.
audit: .venv/ready
	.venv/bin/python -m dpframe audit --size full --jobs 2
	PYTHONPATH=tests .venv/bin/python -m planted --jobs 2
	.venv/bin/python -m pytest -n 2 --dist loadgroup $(LEDGER)

# Every test at full size: hours.
audit-tests: .venv/ready
	DPFRAME_AUDIT=1 .venv/bin/python -m pytest -n 2 --dist loadgroup tests

# The ledger's crash, kill, flip and concurrency trials at full size.
audit-ledger: .venv/ready
	DPFRAME_AUDIT=1 .venv/bin/python -m pytest $(LEDGER)

# Every call of 2 to 6 blocks: no answer of it is worse than 1.05 times what a draw for every part gives.
audit-rule: .venv/ready
	DPFRAME_AUDIT=1 .venv/bin/python -m pytest -n 2 -rP tests/unit/planning/test_no_call_is_worse.py

# Small faults planted in a copy of the package, one at a time, and the test that finds each.
planted: .venv/ready
	PYTHONPATH=tests .venv/bin/python -m planted --jobs 2

# 2,000 generated frames (or FRAMES=200) on every engine, compared with Polars integer by integer, and a cluster that
# loses an executor (Spark needs Java 17).
FRAMES ?= 2000
audit-engines: .venv/ready
	DPFRAME_AUDIT=1 DPFRAME_FRAMES=$(FRAMES) .venv/bin/python -m pytest -v tests/unit/engine/test_engines.py tests/unit/engine/test_engine_boundary.py tests/unit/engine/test_dask.py

# A virtual environment is ready when its mark is newer than pyproject.toml.
.venv-demo/ready: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/$(PIP) --upgrade pip
	.venv-demo/bin/$(PIP) -e ".[demo]"
	touch $@

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/$(PIP) --upgrade pip
	.venv/bin/$(PIP) -e . --group test --group cluster --group lint --group docs "pandas>=3"
	touch $@

.venv-pandas2/ready: pyproject.toml
	$(PYTHON) -m venv .venv-pandas2
	.venv-pandas2/bin/$(PIP) --upgrade pip
	.venv-pandas2/bin/$(PIP) -e . --group test "pandas<3"
	touch $@

clean:
	rm -rf .venv .venv-demo .venv-pandas2 build dist
