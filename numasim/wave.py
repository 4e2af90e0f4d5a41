"""Loads that go up and down, with exact integrals, so that counters depend on the time alone and not on how often
somebody looked."""

from __future__ import annotations

import math
import random

import msgspec


class Wave(msgspec.Struct, frozen=True):
    """mean + sum of amplitude x sin(speed x t + phase). Never below 0: the amplitudes add up to the mean at most."""

    mean: float
    swings: tuple[tuple[float, float, float], ...] = ()
    """(amplitude, speed in radians per second, phase)."""

    def at(self, t: float) -> float:
        """The load at a moment."""
        return self.mean + sum(amp * math.sin(speed * t + phase) for amp, speed, phase in self.swings)

    def total(self, t: float) -> float:
        """The load summed up from 0 to `t`."""
        return self.mean * t + sum(
            amp / speed * (math.cos(phase) - math.cos(speed * t + phase)) for amp, speed, phase in self.swings
        )

    @property
    def low(self) -> float:
        """A bound from below."""
        return self.mean - sum(amp for amp, _, _ in self.swings)

    @property
    def high(self) -> float:
        """A bound from above."""
        return self.mean + sum(amp for amp, _, _ in self.swings)


def daily(rng: random.Random, mean: float, swing: float) -> Wave:
    """A load with a slow wave, as of a day (a quarter of an hour here), and a quick one. `swing` 0..1 of the mean."""
    return Wave(
        mean,
        (
            (mean * swing * 0.6, math.tau / rng.uniform(600, 1200), rng.uniform(0, math.tau)),
            (mean * swing * 0.4, math.tau / rng.uniform(12, 45), rng.uniform(0, math.tau)),
        ),
    )


def quick(rng: random.Random) -> Wave:
    """A pure swing around 0 between -1 and 1, a few seconds long."""
    return Wave(0.0, ((1.0, math.tau / rng.uniform(5, 16), rng.uniform(0, math.tau)),))
