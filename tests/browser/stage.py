"""Puts a scene into the database of a running site: `python -m tests.browser.stage NAME`, a module of `tests.browser.scenes`.

It comes as a whole: the site, which runs meanwhile, would ask a cluster's API server before the scene has switched the cluster off.
"""

from __future__ import annotations

import importlib
import sys

import django


def main(name: str) -> None:
    django.setup()
    # Only now may models be imported.
    from django.db import transaction  # noqa: PLC0415

    scene = importlib.import_module(f"tests.browser.scenes.{name}").scene
    with transaction.atomic():
        scene()


if __name__ == "__main__":
    main(sys.argv[1])
