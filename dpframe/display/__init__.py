"""How things look in a notebook, and progress in a terminal. Loaded when something is first shown.

Pages have no script, no style sheet and no colours of their own: text and lines take the reader's colour, so they
are as readable on dark as on light. Every text is escaped.

Privacy: made from what is public: plans, accounts and released numbers.
"""
