"""How things look in a notebook. Nothing that is shown imports this: each kind is registered here, when one is
first shown.

Pages have no script, no style sheet and no colours of their own: text and lines take the reader's colour, so they
are as readable on dark as on light. Every text is escaped.

Privacy: made from what is public: plans, accounts and released numbers.
"""

from dpframe.accounting.report import Report
from dpframe.api.advice import Advice
from dpframe.api.partition import Partition
from dpframe.base.html import page
from dpframe.budget_plans.budget_plan import BudgetPlan
from dpframe.display import laws, plans, releases, sessions
from dpframe.mechanisms.base import Noise, Shown
from dpframe.planning.explain import Explanation
from dpframe.planning.plan import Plan
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer
from dpframe.release.release import Release
from dpframe.session.session import Session

page.register(Noise)(laws.noise)
page.register(Shown)(laws.mechanism)
page.register(Report)(releases.report)
page.register(Release)(releases.release)
page.register(IntAnswer)(releases.answer)
page.register(FloatAnswer)(releases.answer)
page.register(PairAnswer)(releases.answer)
page.register(Session)(sessions.session)
page.register(Partition)(sessions.partition)
page.register(Explanation)(plans.explanation)
page.register(Plan)(plans.plan)
page.register(Advice)(plans.advice)
page.register(BudgetPlan)(plans.budget_plan)
