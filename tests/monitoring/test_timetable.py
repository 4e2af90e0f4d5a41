"""What is due within the same moment shares a timer, and nobody's turn depends on another's."""

import asyncio

from monitoring.services.collection.timetable import GRAIN, Timetable


def test_everything_has_its_turn_not_before_its_time_and_in_order() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        table, told, over = Timetable(loop), list[str](), asyncio.Event()
        start = loop.time()

        def tell(name: str, when: float) -> None:
            told.append(name if loop.time() >= when else f"{name} too early")

        def fail() -> None:
            raise ZeroDivisionError("broken")

        for i, name in enumerate("abc"):
            table.at(start + i * GRAIN, lambda name=name, i=i: tell(name, start + i * GRAIN))  # type: ignore[misc]
        table.at(start + 3 * GRAIN, fail)
        table.at(start + 3 * GRAIN, lambda: tell("d", start + 3 * GRAIN))
        table.at(start + 5 * GRAIN, over.set)
        await over.wait()
        return told

    assert asyncio.run(work()) == ["a", "b", "c", "broken", "d"]
