"""An order as a script that a person reads and runs, and as a playbook of Ansible, for nodes on which no Job can run.

The steps, checks, copies and the dead-man are those of the applier (`numaagent.applier.steps`), in POSIX shell with coreutils and
systemctl, so that a change begun one way can be taken back the other. What differs: the script brings the new text with it, nobody has
signed it, and of what is in force only the state files tell it. Nothing in it is filled in on the node.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence

import msgspec

from numacore.change import undo
from numacore.change.order import CPU_STATE, MEMORY_STATE, Order, StateFile

_PLAIN = re.compile(r"[\t\n\x20-\x7e]*", re.ASCII)
_END = "END_OF_FILE"
_FIELDS: dict[str, StateFile] = {"cpuManagerPolicy": CPU_STATE, "memoryManagerPolicy": MEMORY_STATE}
_DEFAULTS = {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None"}


class ScriptError(ValueError):
    """An order that no script can carry out."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """An order with what a script needs beside it. `text`: the file as it will be, None = there will be none, or the node's own copy of
    the original takes its place (`restore`); `diff`: for whoever reads; `intended`: fields as they are to be in force, None = the default."""

    order: Order
    text: str | None
    diff: tuple[str, ...] = ()
    intended: dict[str, object] = {}


def script(given: Given) -> str:
    """The whole script. Raises ScriptError."""
    order = given.order
    values = {
        "NODE": order.node,
        "MACHINE": order.machine_id,
        "EPOCH": str(order.epoch),
        "FILE": order.path,
        "BEFORE": order.before,
        "AFTER": order.after,
        "ROOT": order.root,
        "UNIT": order.unit,
        "PORT": str(order.healthz_port),
        "WITHIN": str(order.healthy_within),
        "STEADY": str(order.steady_for),
        "DEADMAN": str(order.dead_man),
        "STAGED": undo.staged(order.path),
        "STATE": undo.STATE,
        "FOLDER": undo.FOLDER,
        "UNITS": undo.UNITS,
        "STATE_FILES": " ".join(order.state_files),
        "RESTORES": "true" if order.act == "restore" else "false",
    }
    for name, value in values.items():
        if not re.fullmatch(r"[\w/.@:+ -]*", value, re.ASCII):
            raise ScriptError(f"{name}: {value!r} cannot stand in a script")
    return "\n".join(
        (
            _HEAD,
            *(f"#   {_visible(line)}" for line in given.diff),
            "",
            *(f"{name}='{value}'" for name, value in values.items()),
            f"SERVICE='{undo.SERVICE}' STATE_SERVICE='{undo.STATE_SERVICE}' TIMER='{undo.TIMER}'",
            "",
            *_text(given),
            *_units(order),
            *_policies(given.intended),
            _BODY,
        )
    )


def playbook(all_given: Sequence[Given]) -> str:
    """One play for each node, one after another; the first that fails ends it. Raises ScriptError."""
    return "---\n" + "\n".join(_play(each) for each in all_given)


def _play(given: Given) -> str:
    order = given.order
    place = f"/var/lib/numaweb/change-{order.epoch}.sh"
    lines = script(given).splitlines()
    return "\n".join(
        (
            f'- name: "numaweb: the kubelet\'s settings on {order.node}"',
            f'  hosts: "{order.node}"',
            "  become: true",
            "  gather_facts: false",
            "  any_errors_fatal: true",
            "  tasks:",
            "    - name: The folder of numaweb",
            "      ansible.builtin.file:",
            "        path: /var/lib/numaweb",
            "        state: directory",
            '        mode: "0700"',
            "      check_mode: false",
            "    - name: The script, as it was reviewed",
            "      ansible.builtin.copy:",
            f"        dest: {place}",
            '        mode: "0700"',
            "        content: !unsafe |2",
            *(f"          {line}" if line else "" for line in lines),
            "      check_mode: false",
            "    - name: What would be done, and whether it can be",
            f"      ansible.builtin.command: /bin/sh {place} look",
            "      changed_when: false",
            "      check_mode: false",
            "    - name: The change; the node goes back by itself when it does not work",
            f"      ansible.builtin.command: /bin/sh {place} apply",
            "      register: numaweb",
            "      changed_when: \"'unchanged:' not in numaweb.stdout\"",
            "",
        )
    ).replace("content: !unsafe |2\n          ", "content: !unsafe |\n          ")


# ---------------------------------------------------------------- parts


def _visible(line: str) -> str:
    """A line for a comment: a control character could make it look like another one in a terminal."""
    return "".join(each if each == "\t" or each.isprintable() else "?" for each in line)


def _text(given: Given) -> Iterable[str]:
    """A shell function that writes the new file's text, or copies the original."""
    yield "# The new settings, whole."
    yield "new_text() {"
    if given.order.act == "restore":
        yield '\tcat -- "$STATE/original$FILE"'
    elif given.text is not None:
        yield from _printed(given.text)
    yield "}"
    yield ""


def _printed(text: str) -> Iterable[str]:
    if _PLAIN.fullmatch(text) and text.endswith("\n") and _END not in text:
        yield f"cat <<'{_END}'"
        yield from text[:-1].split("\n")
        yield _END
        return
    yield "# It has characters that do not stand well in a script; to read it: the line below without `cat`, through base64 -d."
    yield f"base64 -d <<'{_END}'"
    yield from _wrapped(base64.b64encode(text.encode()).decode())
    yield _END


def _wrapped(text: str) -> Iterable[str]:
    return (text[start : start + 76] for start in range(0, len(text), 76))


def _units(order: Order) -> Iterable[str]:
    """Shell functions that write the dead-man's units; of the state files only those that there are come back."""
    hour = "$(date -u -d \"@$(($(date +%s) + DEADMAN + 1))\" '+%Y-%m-%d %H:%M:%S UTC')"
    yield "# What takes the change back, whatever becomes of this script: units of systemd."
    yield from _function("undo_service", undo.service(order))
    yield from _function("undo_timer", undo.timer(order, "@HOUR@"), f' | sed "s/@HOUR@/{hour}/"')
    nothing = undo.state_service(order, ())
    *head, last = nothing.rstrip("\n").split("\n")
    yield "undo_state_service() {"
    yield from _heredoc("\n".join(head))
    for name in order.state_files:
        lines = undo.state_service(order, (name,)).rstrip("\n").split("\n")
        yield f'if [ -e "$ROOT/{name}" ]; then'
        yield from _heredoc("\n".join(lines[len(head) : -1]))
        yield "fi"
    yield from _heredoc(last)
    yield "}"
    yield ""


def _function(name: str, text: str, rest: str = "") -> Iterable[str]:
    yield f"{name}() {{"
    yield f"cat <<'{_END}'{rest}"
    yield text.rstrip("\n")
    yield _END
    yield "}"
    yield ""


def _heredoc(text: str) -> Iterable[str]:
    return (f"cat <<'{_END}'", text, _END)


def _policies(intended: dict[str, object]) -> Iterable[str]:
    """A shell function that is true while the state files have the policies that were asked for."""
    yield "in_force() {"
    for field, name in _FIELDS.items():
        if field in intended:
            policy = str(intended[field] or _DEFAULTS[field])
            if not policy.isascii() or not policy.isalpha():
                raise ScriptError(f"{field}: {policy!r} is no policy")
            yield f"\thas_policy {name} {policy} || return 1"
    yield "\treturn 0"
    yield "}"
    yield ""


_HEAD = """\
#!/bin/sh
# One change of the kubelet's settings on one node, made by numaweb from a preview. Read it first. Then, as root on that node:
#
#   sh THIS_FILE look     says what would be done and whether it can be; changes nothing
#   sh THIS_FILE apply    does it. The kubelet stops for some seconds, pods run on. Whatever fails takes the node back
#
# It ends with 0: done, or nothing to do; 1: not done, the node is as it was; 3: look at the node, it says at what.
# Copies of everything stay in /var/lib/numaweb. By hand: systemctl start numaweb-kubelet-undo.service takes an unfinished change back.
#
# What becomes of the file:"""

_BODY = """\
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077

say() { printf '%s\\n' "$*"; }
refuse() { say "refused: $*" >&2; exit 1; }
hash_of() { if [ -e "$1" ]; then sha256sum <"$1" | cut -c1-64; fi; }
told() { systemctl show --property="$1" --value -- "$2"; }
written() { sync -- "$@"; }

healthy() {
\t[ "$PORT" = 0 ] && return 0
\turl=http://127.0.0.1:$PORT/healthz
\tif command -v curl >/dev/null; then
\t\tcurl --silent --fail --noproxy '*' --max-time 5 "$url" >/dev/null
\telif command -v wget >/dev/null; then
\t\twget -q -T 5 -t 1 --no-proxy -O /dev/null "$url"
\telse
\t\ttimeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"
\tfi
} 2>/dev/null

# A kubelet that cannot go on says ok first and ends some seconds later: it has to be the same process for a while.
lasts() {
\tstart=$(date +%s) since='' last=''
\twhile :; do
\t\tnow=$(date +%s) pid=$(told MainPID "$UNIT")
\t\t[ "$pid" = "$last" ] || since=''
\t\tlast=$pid
\t\tif [ "$(told ActiveState "$UNIT")" = active ] && [ "$pid" != 0 ] && healthy; then
\t\t\tsince=${since:-$now}
\t\t\t[ $((now - since)) -ge "$STEADY" ] && return 0
\t\telse
\t\t\tsince=''
\t\tfi
\t\t[ -z "$since" ] && [ $((now - start)) -gt "$WITHIN" ] && return 1
\t\t[ $((now - start)) -gt $((WITHIN + STEADY + 5)) ] && return 1
\t\tsleep 1
\tdone
}

has_policy() {
\tgrep -Eq 'policyName[\\\\]*" *: *[\\\\]*"'"$2"'[\\\\]*"' "$ROOT/$1"
}

room() {
\tfree=$(df -P -k -- "$1" | awk 'NR == 2 { print $4 }')
\t[ "${free:-0}" -ge 1024 ] || refuse "$1 has ${free:-0} KiB left and 1024 are needed: make room on the node"
}

check() {
\t[ "$(id -u)" = 0 ] || refuse 'only root may do this'
\tfor each in systemctl cp mv rm sync touch; do
\t\t[ -x "/bin/$each" ] || refuse "/bin/$each is not there: change this node by hand"
\tdone
\tcommand -v flock >/dev/null || refuse 'flock is not there (util-linux): change this node by hand'
\tif [ -n "$MACHINE" ] && [ "$(cat /etc/machine-id)" != "$MACHINE" ]; then
\t\trefuse "this machine is not $NODE: its /etc/machine-id is another one"
\tfi
\tif [ -e "$FOLDER/armed" ]; then
\t\trefuse "an unfinished change stands on this node: systemctl start $SERVICE takes it back"
\tfi
\tseen=$(sed -n 's/.*"epoch":\\([0-9]*\\).*/\\1/p' "$STATE/epoch" 2>/dev/null)
\tif [ "${seen:-0}" -gt "$EPOCH" ]; then
\t\trefuse "a newer change was made on this node (${seen}, this is ${EPOCH}): make a new script"
\tfi
\tif [ -L "$FILE" ]; then refuse "$FILE is a link: change this node by hand"; fi
\t[ "$(told LoadState "$UNIT")" = loaded ] || refuse "systemd knows no $UNIT: change this node by hand"
}

check_change() {
\there=$(hash_of "$FILE")
\tif [ "$here" = "$AFTER" ]; then
\t\tin_force || refuse "$FILE says so already, and the kubelet was not started with it: restart it and look again"
\t\tsay "unchanged: $FILE is as it should be"
\t\texit 0
\tfi
\tif [ "$here" != "$BEFORE" ]; then
\t\trefuse "somebody changed $FILE since the preview (it has ${here:-no file}, expected ${BEFORE:-no file}): make a new script"
\tfi
\tif [ "$(new_text | sha256sum | cut -c1-64)" != "$AFTER" ] && [ -n "$AFTER" ]; then
\t\trefuse 'the new text is not what the preview showed: this script was altered, or the kept original is damaged'
\tfi
\tif [ "$(told ActiveState "$UNIT")" != active ] || ! healthy; then
\t\trefuse "the kubelet is not well before the change, so nobody could tell whether the change is to blame: journalctl -u $UNIT"
\tfi
\tfor each in /var/lib "$(dirname -- "$FILE")" "$ROOT" "$UNITS"; do room "$each"; done
}

keep() {
\tchange=$STATE/changes/$EPOCH
\tmkdir -p -- "$FOLDER" "$change" "$(dirname -- "$STATE/original$FILE")" || return 1
\texec 9>"$STATE/lock"
\tflock -n 9 || refuse 'another change is being made on this node'
\tknown=$STATE/original$FILE.json
\tif [ ! -e "$known" ] || { grep -q '"restored":true' "$known" && ! grep -q "\\"sha256\\":\\"$BEFORE\\"" "$known"; }; then
\t\trm -f -- "$known" "$STATE/original$FILE"
\t\tif [ -n "$BEFORE" ]; then cp -a -- "$FILE" "$STATE/original$FILE" && written "$STATE/original$FILE" || return 1; fi
\t\tprintf '{"sha256":"%s","epoch":%s,"attributes":null,"restored":false}' "$BEFORE" "$EPOCH" >"$known.new" &&
\t\t\twritten "$known.new" && mv -f -- "$known.new" "$known" || return 1
\tfi
\trm -f -- "$FOLDER/state-taken" "$FOLDER/undone" "$FOLDER/settings" "$FOLDER/cpu_manager_state" "$FOLDER/memory_manager_state"
\tif [ -n "$BEFORE" ]; then
\t\tcp -a -- "$FILE" "$change/before" && cp -a -- "$FILE" "$FOLDER/settings" && cp -a -- "$FILE" "$STAGED" || return 1
\t\twritten "$change/before" "$FOLDER/settings" || return 1
\telif [ -n "$AFTER" ]; then
\t\t(umask 022 && : >"$STAGED") || return 1
\tfi
\tif [ -n "$AFTER" ]; then
\t\tnew_text >"$STAGED" && written "$STAGED" || return 1
\t\t[ "$(hash_of "$STAGED")" = "$AFTER" ]
\tfi
}

arm() {
\t(umask 022 && undo_service >"$UNITS/$SERVICE" && undo_state_service >"$UNITS/$STATE_SERVICE" && undo_timer >"$UNITS/$TIMER") &&
\t\twritten "$UNITS/$SERVICE" "$UNITS/$STATE_SERVICE" "$UNITS/$TIMER" "$UNITS" || return 1
\t# In this order: the link of `enable` makes a newer systemd call the unit changed on disk.
\tsystemctl --quiet enable "$TIMER" && systemctl daemon-reload && systemctl restart "$TIMER" || return 1
\tfor each in "$SERVICE" "$STATE_SERVICE" "$TIMER"; do
\t\t[ "$(told LoadState "$each")" = loaded ] && [ "$(told FragmentPath "$each")" = "$UNITS/$each" ] &&
\t\t\t[ -z "$(told DropInPaths "$each")" ] && [ "$(told NeedDaemonReload "$each")" = no ] || return 1
\tdone
\t[ "$(told ActiveState "$TIMER")" = active ] && [ "$(told UnitFileState "$TIMER")" = enabled ] || return 1
\tprintf '{"epoch":%s,"document":"script"}' "$EPOCH" >"$STATE/epoch" && written "$STATE/epoch" || return 1
\tprintf '{"epoch":%s,"document":"script"}' "$EPOCH" >"$FOLDER/armed.new" && written "$FOLDER/armed.new" &&
\t\tmv -f -- "$FOLDER/armed.new" "$FOLDER/armed" && written "$FOLDER"
}

disarmed() {
\tsystemctl stop "$TIMER"
\tsystemctl --quiet disable "$TIMER"
\trm -f -- "$UNITS/$TIMER" "$UNITS/$SERVICE" "$UNITS/$STATE_SERVICE" "$STAGED"
\tsystemctl daemon-reload
} 2>/dev/null

change() {
\tsystemctl stop "$UNIT" || return 1
\tif [ "$(told MainPID "$UNIT")" != 0 ] || [ "$(told ActiveState "$UNIT")" = active ]; then
\t\tsay "$UNIT was stopped and runs: something on the node starts it"
\t\treturn 1
\tfi
\tfor each in $STATE_FILES; do
\t\tif [ -e "$ROOT/$each" ]; then
\t\t\tgrep -q " $FOLDER/$each " "$UNITS/$STATE_SERVICE" || { say "$each came while the kubelet stopped: try again"; return 1; }
\t\t\tcp -a -- "$ROOT/$each" "$FOLDER/$each" && cp -a -- "$ROOT/$each" "$STATE/changes/$EPOCH/$each" &&
\t\t\t\twritten "$FOLDER/$each" || return 1
\t\telif grep -q " $FOLDER/$each " "$UNITS/$STATE_SERVICE"; then
\t\t\tsay "$each went while the kubelet stopped: try again"
\t\t\treturn 1
\t\tfi
\tdone
\ttouch -- "$FOLDER/state-taken" && written "$FOLDER/state-taken" "$FOLDER" || return 1
\tif [ -n "$AFTER" ]; then mv -f -T -- "$STAGED" "$FILE" || return 1; else rm -f -- "$FILE" || return 1; fi
\twritten "$(dirname -- "$FILE")" || return 1
\t[ "$(hash_of "$FILE")" = "$AFTER" ] || { say "$FILE is not what was written"; return 1; }
\tfor each in $STATE_FILES; do rm -f -- "$ROOT/$each" || return 1; done
\twritten "$ROOT" || return 1
\tsystemctl reset-failed "$UNIT" 2>/dev/null
\tsystemctl start "$UNIT" || return 1
\tlasts || { say "the kubelet is not well with the new settings: journalctl -u $UNIT"; return 1; }
\tin_force || { say 'the kubelet runs, and its state files have another policy: a flag or a later drop-in sets it'; return 1; }
}

back() {
\ttrap '' INT TERM HUP
\tsay 'going back'
\tif ! systemctl start "$SERVICE" || [ -e "$FOLDER/armed" ]; then
\t\tsay "failed: the way back did not work; $TIMER will try again. Look at: journalctl -u $SERVICE" >&2
\t\texit 3
\tfi
\tif [ "$(hash_of "$FILE")" != "$BEFORE" ] || ! lasts; then
\t\tsay "failed: the old settings are back and the kubelet is not well: journalctl -u $UNIT" >&2
\t\texit 3
\tfi
\tdisarmed
\tsay 'restored: it did not work, and the node is as it was' >&2
\texit 1
}

apply() {
\tcheck_change
\tkeep || { rm -f -- "$STAGED"; refuse 'the copies could not be written; nothing was changed'; }
\tarm || { disarmed; rm -f -- "$FOLDER/armed" "$FOLDER/armed.new"; refuse 'systemd did not take the dead-man; nothing was changed'; }
\ttrap back INT TERM HUP
\tchange || back
\ttrap '' INT TERM HUP
\trm -f -- "$FOLDER/armed" || back
\twritten "$FOLDER"
\tcase $(told ActiveState "$SERVICE") in active | activating | deactivating) back ;; esac
\t[ -e "$FOLDER/undone" ] && back
\tsed -i "s/\\"restored\\":[a-z]*/\\"restored\\":$RESTORES/" "$STATE/original$FILE.json"
\tdisarmed
\tsay "applied: $FILE"
}

check
case ${1-} in
look)
\tcheck_change
\tsay "would change $FILE and remove: ${STATE_FILES:-no state file}; nothing was done"
\t;;
apply) apply ;;
*) refuse "say 'look' or 'apply'" ;;
esac
"""
