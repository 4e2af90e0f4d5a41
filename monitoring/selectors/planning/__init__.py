"""What would become of pods on the nodes of a cluster as they are now: reads, judges, changes nothing.

`nodes` makes candidates of the newest state, `plan` judges groups of pods on them as far as the time allows, `detail` judges one node
with all evidence. What was judged is remembered, so that asking again goes on.
"""

from monitoring.selectors.planning.detail import Detail, Turn, detail
from monitoring.selectors.planning.nodes import capacities, chosen
from monitoring.selectors.planning.plan import Plan, Row, State, forget, plan
from monitoring.selectors.planning.question import Question, UnknownNodesError
from monitoring.selectors.planning.rejudging import Explanation, Rejudged, rejudge

__all__ = [
    "Detail",
    "Explanation",
    "Plan",
    "Question",
    "Rejudged",
    "Row",
    "State",
    "Turn",
    "UnknownNodesError",
    "capacities",
    "chosen",
    "detail",
    "forget",
    "plan",
    "rejudge",
]
