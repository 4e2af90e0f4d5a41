"""Every code that the planner and the engine can write as a cause, a warning or what was seen. Sentences: `policies.words.rollout`.

Beside them stand those of appliers (`numaagent.applier`) and those of previews (`numacore.whatif.changing`), as they come.
"""

LEFT_OUT = (
    "already",  # its file says so
    "control-plane",
    "frozen",  # pools {pools}: they share nodes
    "no-data",  # nobody tells of it
    "old-data",  # seconds {age}
    "would-crash",
    "would-not-start",  # words {words}
    "original-unread",  # file {file}: what stood there first is not known
    "file-alone",  # field {field}: its file is the original one, and that field is not in force
)
"""Why a node of the target is not in the plan."""

WARNINGS = (
    "single-node",
    "capacity",  # resource {resource}, batch {batch}, missing {missing}: while the batch is away
    "blocking-budget",  # budget {budget}, pods {pods}: allows no eviction now
    "local-data",  # pods {pods}: what they keep on the node is lost when they move
    "bare-pods",  # pods {pods}: nobody makes them anew
    "own-pods",  # nodes {nodes}: numaweb itself runs there
    "missing-right",  # rights {rights}
    "lost-pods",  # pods {pods}: would not be admitted again
    "policies-on",  # number {number}: they want what is taken back
    "second-file",  # nodes {nodes}: another file of theirs stays changed
)

STAYS = (
    "daemonset",  # pod {pod}
    "static-pod",  # pod {pod}
    "own-pod",  # pod {pod}: of numaweb's namespace
)
"""Why a pod stays when its node is drained."""

NODE = (
    "stopped",
    "not-begun",  # rolled back before its turn
    "gone",
    "replaced",
    "not-ready",
    "cordoned-by-others",
    "uncordoned-by-others",
    "stale",  # file {file}
    "other-topology",
    "would-crash",
    "would-not-start",  # words {words}
    "no-data",
    "drain-timeout",  # pods {pods}, seconds {seconds}
    "name-taken",  # name {name}
    "no-answer",  # words {words}
    "strange-answer",
    "gate-not-ready",
    "gate-not-in-force",  # field {field}
    "gate-no-data",
    "gate-topology",
    "gate-refused-pods",  # pods {pods}
    "gate-locality",  # before {before}, after {after}
    "undo-failed",  # why {why}
    "undo-unknown",  # what it was cannot be made
    "order",  # error {error}
)
"""Why a node failed, was left alone, or goes back."""

ROLLOUT = (
    "stopped-by",  # who {who}
    "node-failed",  # node {node}, why {why}
    "unreachable",  # words {words}
    "missing-right",  # rights {rights}
    "api",  # words {words}
    "no-connection",
    "access",  # words {words}
    "off",
    "no-key",  # words {words}
    "store",  # words {words}
    "nothing",
    "nothing-back",  # of all nodes that stand changed none can be taken back
    "policy-gone",
    "window",  # opens {opens}
    "pause",  # until {until}
    "altered",  # the stored plan is not the one that was made
    "nodes-down",  # nodes {nodes}, most {most}
)
"""Why a rollout stopped, waits, or could not be planned."""

SEEN = (
    "as-before",  # crossing {crossing}, refused {refused}: what gates compare with
    "blocked",  # words {words}: an eviction
    "evicted",
    "pod-gone",
    "somebody-was-quicker",
    "answered",  # outcome {outcome}
    "gate-waits",  # gate {gate}
    "tidied",
    "left-cordoned",  # its mark was taken off by others
    "locality-worse",  # before {before}, after {after}
    "api",
)
"""What an act saw."""

CODES = tuple(dict.fromkeys((*LEFT_OUT, *WARNINGS, *STAYS, *NODE, *ROLLOUT, *SEEN)))
