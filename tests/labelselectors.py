"""Labels of a few nodes and selectors over them, with who is meant. Asked of our reading in tests/monitoring/kube and of the API server in tests/cluster."""

NODES: dict[str, dict[str, str]] = {
    "gold-a": {"tier": "gold", "zone": "a", "cores": "96", "example.org/numa": "8"},
    "gold-b": {"tier": "gold", "zone": "b", "cores": "64"},
    "silver-a": {"tier": "silver", "zone": "a", "cores": "many", "legacy": ""},
    "bare": {},
}

MEANT: dict[str, set[str]] = {
    "tier=gold": {"gold-a", "gold-b"},
    "tier==gold,zone=a": {"gold-a"},
    " tier = gold , zone = b ": {"gold-b"},
    "tier!=gold": {"silver-a", "bare"},
    "tier in (gold, silver)": {"gold-a", "gold-b", "silver-a"},
    "tier notin (gold)": {"silver-a", "bare"},
    "tier,tier notin (gold)": {"silver-a"},
    "legacy": {"silver-a"},
    "!legacy": {"gold-a", "gold-b", "bare"},
    "legacy=": {"silver-a"},
    "legacy in ()": {"silver-a"},
    "cores>64": {"gold-a"},
    "cores<65": {"gold-b"},
    "cores > 63, zone in (b)": {"gold-b"},
    "example.org/numa=8": {"gold-a"},
    "example.org/numa,!legacy,tier notin (silver,bronze)": {"gold-a"},
    "tier=gold,tier=silver": set(),
    "absent=x": set(),
}

REFUSED: dict[str, str] = {
    "tier gold": "syntax",
    "tier=gold zone=a": "syntax",
    "=gold": "key",
    "!": "key",
    "tier=gold,": "key",
    "-tier=gold": "key",
    "Example.org/numa": "key",
    "a/b/c": "key",
    f"{'x' * 64}=1": "key",
    "tier=-gold": "value",
    f"tier={'x' * 64}": "value",
    "tier in (gold": "syntax",
    "tier in gold": "syntax",
    "cores>many": "number",
    "cores>": "number",
    "tier=(gold)": "syntax",
}
