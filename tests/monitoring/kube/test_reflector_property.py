"""Any order of changes, cuts, 410s, restarts and garbage: in the end the copy is what the server has."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kubecontract import topology
from tests.monitoring.kube.answers import breaking_off, line, refusing, status_object
from tests.monitoring.kube.fake import FakeApiServer
from tests.monitoring.kube.recording import mirror, until

NAMES = "abcdefgh"
STORE = "numatopologies.nodeinfo.volcano.sh"
GONE = line("ERROR", status_object(410, "Expired", "too old"))

changes = st.sampled_from([f"toggle {name}" for name in NAMES] + [f"change {name}" for name in NAMES])
faults = st.sampled_from(
    [
        "cut",
        "cut inside a line",
        "cut inside a list",
        "end",
        "forget",
        "forget and say so",
        "refuse a watch",
        "refuse a list",
        "garbage",
        "remember",
        "go back",
        "bookmark",
        "breathe",
    ]
)


class Story:
    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.saved = server.backup()

    def change(self, what: str) -> None:
        verb, _, name = what.partition(" ")
        known = (STORE, name) in self.server.objects
        if verb == "change":
            if known:
                self.server.patch(topology(name), {"metadata": {"labels": {"at": str(self.server.version)}}})
        elif known:
            self.server.delete(topology(name))
        else:
            self.server.create(topology(name))

    async def suffer(self, fault: str) -> None:
        server = self.server
        match fault:
            case "cut":
                server.cut()
            case "cut inside a line":
                server.say(b'{"type":"ADDED","object":{"metadata":{"na')
                await asyncio.sleep(0.002)
                server.cut()
            case "cut inside a list":
                server.next_lists.append(breaking_off(b'{"metadata":{"resourceVersion":"9"},"items":['))
                server.say(GONE)
            case "end":
                server.end_watches()
            case "forget":
                server.expire()
            case "forget and say so":
                server.expire()
                server.say(GONE)
            case "refuse a watch":
                server.next_watches.append(refusing(410, "Gone"))
                server.end_watches()
            case "refuse a list":
                server.next_lists.append(refusing(429, "TooManyRequests"))
                server.say(GONE)
            case "garbage":
                server.say(b"}{\n")
            case "remember":
                self.saved = server.backup()
            case "go back":
                await self.go_back()
            case "bookmark":
                meta = {"metadata": {"resourceVersion": str(server.version)}}
                server.say(line("BOOKMARK", meta))
            case "breathe":
                await asyncio.sleep(0.01)

    async def go_back(self) -> None:
        """As a real server does: it takes its time. What happens before the first question after it, and makes up for all
        the versions that were lost, only the regular list finds."""
        server = self.server
        server.next_lists.clear()
        server.next_watches.clear()
        await server.stop()
        server.restore(self.saved)
        await server.start()
        asked = len(server.asked)
        await until(lambda: len(server.asked) > asked, "a question")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), changes, faults), max_size=25))
async def test_the_copy_is_what_the_server_has(steps: list[tuple[bool, str, str]]) -> None:
    async with FakeApiServer() as server:
        for name in "abcde":
            server.create(topology(name))
        story = Story(server)
        async with mirror(server) as it:
            await it.watches()
            for faulty, change, fault in steps:
                if faulty:
                    await story.suffer(fault)
                else:
                    story.change(change)
            # A change that nobody has seen yet shows that the end is reached.
            server.create(topology("z"))
            await until(
                lambda: (
                    it.copy.names
                    == {
                        each["metadata"]["name"]: each["metadata"]["resourceVersion"]
                        for each in server.objects.values()
                    }
                ),
                "the same as the server has",
            )
