"""What the tables of this room's pages save: for each column where its value comes from. Names are those of REST where it has the same."""

from __future__ import annotations

from operator import attrgetter, itemgetter

from monitoring.views.columns import Columns, of, plain, text
from policies.words import policy as words

TARGETS: Columns = {
    **of("level", "name", "selector"),
    "policy": lambda each: each.policy.wish if each.policy else None,
    "on": lambda each: each.policy.on if each.policy else None,
    "version": lambda each: each.policy.version if each.policy else None,
    "frozen": attrgetter("frozen"),
    "nodes": lambda each: each.nodes if each.policy and each.policy.on else None,
    "differ": lambda each: each.differ if each.policy and each.policy.on else None,
}
"""Of a `TargetRow`."""

STANDING: Columns = {
    "node": attrgetter("node"),
    "state": attrgetter("state"),
    "meaning": lambda each: str(words.STATES[each.state]),
    "topology_policy": lambda each: each.topology_policy or None,
    "level": lambda each: each.applied.policy.level if each.applied.policy else None,
    "target": lambda each: each.applied.policy.target if each.applied.policy else None,
    "frozen": plain(attrgetter("applied.frozen")),
    "differences": plain(attrgetter("differences")),
}
"""Of a `Standing`."""

VERSIONS: Columns = of("version", "at", "by", "on", "wish")
"""Of a version of a policy."""

ORIGINALS: Columns = {
    "node": attrgetter("original.node_name"),
    "path": attrgetter("original.path"),
    "changes": lambda each: [
        {"field": field, "now": now or None, "original": then} for field, now, then in each.changes
    ],
    "why_not": lambda each: each.why or None,
    "taken": attrgetter("original.taken"),
    "rollout": attrgetter("original.rollout_id"),
}
"""Of a line of what stands changed."""

ROLLOUTS: Columns = {
    "number": attrgetter("rollout.pk"),
    "target": attrgetter("target"),
    "state": attrgetter("rollout.state"),
    "cause": lambda each: each.cause.text if each.cause else None,
    "nodes": attrgetter("progress.nodes"),
    "ended": attrgetter("progress.ended"),
    **{name: attrgetter(f"rollout.{name}") for name in ("made", "made_by", "confirmed", "confirmed_by")},
    "rollout_ended": attrgetter("rollout.ended"),
}
"""Of a line of the list of rollouts."""

ROLLED: Columns = {
    **{name: attrgetter(f"node.{name}") for name in ("name", "batch", "step", "outcome", "back")},
    "changes": lambda each: [
        {"field": field, "now": now, "wanted": then} for field, now, then in each.changes
    ],
    "cause": lambda each: each.cause.text if each.cause else None,
    "said": lambda each: each.said or None,
}
"""Of a node of a rollout."""

ACTS: Columns = {
    "at": attrgetter("act.at"),
    "kind": attrgetter("act.kind"),
    "act": text(attrgetter("kind")),
    "subject": attrgetter("act.subject"),
    "tries": attrgetter("act.tries"),
    "state": attrgetter("act.state"),
    "said": lambda each: each.said.text if each.said else None,
}
"""Of what was done on a node."""

CLEANUPS: Columns = {
    "number": attrgetter("pk"),
    **of("state", "made", "made_by", "started", "started_by", "ended", "left_out", "error"),
}

CLEANED: Columns = {
    "namespace": attrgetter("namespace"),
    "pod": attrgetter("name"),
    "uid": attrgetter("uid"),
    "node": attrgetter("node_name"),
    **of("owner_kind", "owner_name", "reason", "outcome", "cause"),
}
"""Of a pod of a clean-up."""

OWNERS: Columns = {"owner": itemgetter(0), "pods": itemgetter(1)}
