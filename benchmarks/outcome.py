"""A line of the table: what was measured, ours, the peer's, and whether the goal is met."""

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """`figure` is compared with `goal`: a ratio where there is a peer, else ours in the unit of the goal."""

    what: str
    ours: str
    peer: str
    figure: float
    goal: float
    unit: str = "x"
    """`x` for a ratio."""
    how: str = ""
    """What exactly was counted, for whoever wants to measure it again."""

    @property
    def met(self) -> bool:
        return self.figure <= self.goal

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        ratio = f"{self.figure:.3f} x" if self.unit == "x" else "-"
        goal = f"<= {self.goal:g} {self.unit}"
        return (self.what, self.ours, self.peer, ratio, goal, "met" if self.met else "MISSED")


class NotRun(msgspec.Struct, frozen=True):
    """A bench that this machine could not run, or that broke, and why."""

    what: str
    cause: str

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        return (self.what, "-", "-", "-", "-", f"not run: {self.cause}")


HEAD = ("what", "ours", "peer", "ratio", "goal", "verdict")


def table(outcomes: list[Outcome | NotRun]) -> str:
    """All outcomes as a Markdown table, columns aligned."""
    rows = [HEAD, *(outcome.cells for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
