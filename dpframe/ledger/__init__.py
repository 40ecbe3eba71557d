"""The durable ledger: a budget that outlives processes.

``dp.Ledger.create`` declares a budget in a file once; every session on it, in any process, thread or
fork, charges the same budget.
"""

from dpframe.accounting.claims import Busy, Claim, Head, Ticket
from dpframe.ledger.book import Ledger, window_text
from dpframe.ledger.granting import Transaction
from dpframe.ledger.sums import LedgerEntry

__all__ = ["Busy", "Claim", "Head", "Ledger", "LedgerEntry", "Ticket", "Transaction", "window_text"]
