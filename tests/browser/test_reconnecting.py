"""When a page comes back after its connection broke: soon, and never in the same moment as a thousand others."""

from __future__ import annotations

import json
import subprocess

from tests import servers
from tests.servers import ROOT

PROGRAM = """
const nothing = () => {};
const element = { dataset: {}, classList: { toggle: nothing }, querySelector: () => ({}), appendChild: (each) => each };
globalThis.window = {
  location: { protocol: "https:", host: "numa.example", href: "https://numa.example/c/lab/" },
  localStorage: { getItem: () => null, setItem: nothing }, history: { replaceState: nothing, state: null },
  addEventListener: nothing,
};
globalThis.document = {
  hidden: false, documentElement: element, body: element, addEventListener: nothing, getElementById: () => null,
  querySelector: () => null, querySelectorAll: () => [], createElement: () => element,
};
globalThis.fetch = async () => { throw new Error("the server is away"); };
globalThis.setInterval = nothing;
globalThis.WebSocket = class {
  static OPEN = 1;
  constructor() { this.heard = {}; sockets.push(this); }
  addEventListener(name, call) { this.heard[name] = call; }
};
let sockets = [];
let waits = [];
globalThis.setTimeout = (call, pause) => { waits.push({ call, pause }); return waits.length; };
globalThis.clearTimeout = nothing;
const { Live } = await import(process.argv[1]);
const attempts = Number(process.argv[2]);
const pauses = [];
for (let browser = 0; browser < 1000; browser += 1) {
  sockets = []; waits = [];
  const page = new Live("/ws/c/lab/overview/", { text: nothing });
  const own = [];
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const socket = sockets.at(-1);
    await socket.heard.close({ target: socket, code: attempt ? 1006 : 1001 });
    const { call, pause } = waits.at(-1);
    own.push(pause);
    page.timer = null;
    call();
  }
  pauses.push(own);
}
console.log(JSON.stringify(pauses));
"""


def pauses(attempts: int) -> list[list[float]]:
    """Milliseconds that each of a thousand browsers waits before each attempt, from the moment that the server said goodbye."""
    node = servers.program("node")
    live = (ROOT / "static" / "src" / "live.js").as_uri()
    command = [str(node), "--input-type=module", "--eval", PROGRAM, live, str(attempts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[float]] = json.loads(done.stdout)
    return found


def test_a_thousand_pages_come_back_spread_and_within_three_seconds_of_a_restart() -> None:
    found = pauses(20)
    assert len(found) == 1000
    # Whenever within the first half minute the server is there again, nobody waits longer than this for the next attempt.
    assert max(max(own) for own in found) <= 3000
    assert min(map(sum, found)) > 20_000
    first = sorted(own[0] for own in found)
    assert first[-1] - first[0] > 300
    moments = [sum(own[:3]) for own in found]
    most = max(sum(1 for each in moments if at <= each < at + 100) for at in range(0, 6000, 100))
    assert most < 200  # of 1,000 within a tenth of a second


def test_a_server_that_stays_away_is_asked_less_and_less() -> None:
    late = [own[-1] for own in pauses(26)]
    assert min(late) > 7_000
    assert max(late) <= 22_500
