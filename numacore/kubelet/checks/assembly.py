"""One configuration out of a file, drop-ins and flags, the way the kubelet puts it together, with what goes wrong or unnoticed there.

Rules: kubelet 1.37, kubeletconfig/configfiles, kubeletconfig/util/codec/codec.go; cmd/kubelet/app/server.go `loadConfigFile`,
`mergeKubeletConfigurations`, `kubeletConfigFlagPrecedence`; apis/config/v1beta1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from numacore.diagnosis import Reason
from numacore.kubelet.checks import flags, gates
from numacore.kubelet.checks.decoding import Decoded, TypeFault, decode, nearest
from numacore.kubelet.checks.findings import PROVEN, Finding, Severity, Stage
from numacore.kubelet.checks.tables import FIELDS
from numacore.kubelet.options import quoted

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"
DEFAULT_EVICTION_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""kubelet 1.37, eviction/defaults_linux.go."""
DROP_INS_SINCE = 28, 30
"""Minor versions that know drop-ins, and that know them without KUBELET_CONFIG_DROPIN_DIR_ALPHA in the environment."""
CRASH_LOOP_GATE = "KubeletCrashLoopBackOffMax"
PULLED_IMAGES_GATE = "KubeletEnsureSecretPulledImages"
THROTTLING_SINCE, NO_THROTTLING_SINCE, RESERVATION_POLICY_SINCE = 27, 37, 36
"""Minor versions that fill in memoryThrottlingFactor, that do not any more, and that fill in memoryReservationPolicy."""
GATES_PANIC_SINCE = 32
"""Minor version since which defaults depend on gates, and a gate that cannot be set there is a panic."""


class Document(msgspec.Struct, frozen=True):
    """A file as values; `documents.read` makes it of text."""

    text: str = ""
    value: Any = None
    duplicates: tuple[tuple[str, int], ...] = ()
    """Paths of keys that stand there twice, with the line of the second."""
    json: bool = False
    fault: str = ""
    """What is wrong with its syntax; empty = nothing."""
    line: int = 0
    """Where; 0 = unknown."""
    documents: int = 1
    """How many the file holds: the kubelet reads the first and does not look at the others."""


class File(msgspec.Struct, frozen=True):
    """A file with its name, which for a drop-in decides about its order and whether it counts."""

    name: str
    document: Document


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where a kubelet's settings come from."""

    minor: int
    file: File | None = None
    drop_ins: tuple[File, ...] | None = None
    """None = the kubelet is given no folder (`--config-dir`)."""
    flags: tuple[str, ...] = ()


class Assembly(msgspec.Struct, frozen=True):
    """The configuration in force, defaults filled in where checks need them; None = the kubelet does not come that far."""

    fields: dict[str, Any] | None
    findings: tuple[Finding, ...]
    origin: dict[str, str]
    """Where each field was set last: the name of the file, or of the flag with its dashes."""


def assemble(sources: Sources) -> Assembly:
    return _Assembler(sources).assembled()


class _Assembler:
    def __init__(self, sources: Sources) -> None:
        self.sources, self.minor = sources, sources.minor
        self.findings: list[Finding] = []
        self.origin: dict[str, str] = {}
        self.flag_gates: dict[str, bool] = {}

    def assembled(self) -> Assembly:
        made = self._made()
        return Assembly(made, tuple(self.findings), self.origin)

    def _made(self) -> dict[str, Any] | None:
        try:
            given = flags.parse(self.sources.flags, self.minor)
        except flags.FlagError as error:
            self._find(
                "fatal", "flags", f"--{error.flag}" if error.flag else "", str(error), *_flag_reason(error)
            )
            return None
        if not self._folder_known():
            return None
        set_by_flags = flags.fields(given, self.minor)
        self.flag_gates = set_by_flags.get("featureGates", {})
        if not self._gates_taken(self.flag_gates, "gates", ""):
            return None
        made = self._loaded()
        if made is None:
            return None
        if self.sources.drop_ins is not None:
            made = self._merged(made, self.sources.drop_ins)
            if made is None:
                return None
        return self._overridden(made, set_by_flags)

    def _find(
        self,
        severity: Severity,
        stage: Stage,
        field: str,
        words: str,
        reason: Reason,
        remedy: Reason,
        where: str = "",
    ) -> None:
        self.findings.append(
            Finding(
                severity=severity,
                stage=stage,
                field=field,
                where=where,
                words=words,
                reason=reason,
                remedy=remedy,
                proven=self.minor in PROVEN,
            )
        )

    def _folder_known(self) -> bool:
        """Whether this version takes drop-ins at all (KEP-3983)."""
        if self.sources.drop_ins is None or self.minor >= DROP_INS_SINCE[1]:
            return True
        if self.minor < DROP_INS_SINCE[0]:
            reason, remedy = (
                Reason("unknown-flag", {"flag": flags.CONFIG_DIR}),
                Reason("remove-flag", {"flag": flags.CONFIG_DIR}),
            )
            self._find("fatal", "flags", "--config-dir", "unknown flag: --config-dir", reason, remedy)
            return False
        self._find(
            "warning", "flags", "--config-dir", "", Reason("drop-ins-alpha"), Reason("set-drop-in-variable")
        )
        return True

    # The file

    def _loaded(self) -> dict[str, Any] | None:
        if self.sources.file is None:
            return self._with_defaults({})
        name, document = self.sources.file.name, self.sources.file.document
        if not self._is_configuration(document, name, "load"):
            return None
        decoded = decode(document.value, self.minor, in_order=document.json)
        for path, line in document.duplicates:
            self._find(
                "silent",
                "load",
                path,
                _twice(path, line),
                Reason("duplicate", {"line": line}),
                Reason("remove-duplicate"),
                name,
            )
        self._unknown(decoded.unknown, name, "unknown field {}")
        if not self._types_fit(decoded, name, "load", "failed to decode: "):
            return None
        made = decoded.value
        if not self._gates_taken(self.flag_gates | made.get("featureGates", {}), "load", name):
            return None
        self.origin |= dict.fromkeys(made, name)
        made = self._with_defaults(made)
        if "evictionHard" not in made:
            made["evictionHard"] = dict(DEFAULT_EVICTION_HARD)
        elif made.get("mergeDefaultEvictionSettings"):
            made["evictionHard"] = DEFAULT_EVICTION_HARD | made["evictionHard"]
        return made

    def _is_configuration(self, document: Document, name: str, stage: Stage) -> bool:
        """Whether it is YAML or JSON, and of the kind and version that this file must have."""
        if not document.text and not document.value and not document.fault:
            self._find("fatal", stage, "", "was empty", Reason("empty-file"), Reason("give-kind"), name)
            return False
        if document.fault:
            reason = Reason(
                "json-syntax" if document.json else "yaml-syntax",
                {"line": document.line, "problem": document.fault},
            )
            self._find("fatal", stage, "", "", reason, Reason("mend-syntax", {"line": document.line}), name)
            return False
        fields = document.value if isinstance(document.value, dict) else {}
        version, kind = fields.get("apiVersion") or "", fields.get("kind") or ""
        if document.value is not None and not isinstance(document.value, dict):
            self._find(
                "fatal",
                stage,
                "",
                "couldn't get version/kind; json parse error",
                Reason("not-a-mapping"),
                Reason("give-kind"),
                name,
            )
        elif not isinstance(version, str) or not isinstance(kind, str):
            self._find(
                "fatal",
                stage,
                "kind",
                "couldn't get version/kind; json parse error",
                Reason("wrong-kind"),
                Reason("give-kind"),
                name,
            )
        elif not kind:
            self._find(
                "fatal",
                stage,
                "kind",
                "Object 'Kind' is missing in",
                Reason("no-kind"),
                Reason("give-kind"),
                name,
            )
        elif not version and stage == "load":
            self._find(
                "fatal",
                stage,
                "apiVersion",
                "Object 'apiVersion' is missing in",
                Reason("no-version"),
                Reason("give-kind"),
                name,
            )
        elif (version, kind) != (API_VERSION, KIND):
            if stage == "merge":
                self._named_twice(document, name)
            self._find(
                "fatal",
                stage,
                "kind",
                _wrong_kind(version, kind, stage),
                Reason("wrong-kind", {"version": version, "kind": kind}),
                Reason("give-kind"),
                name,
            )
        else:
            if document.documents > 1:
                self._find(
                    "silent",
                    stage,
                    "",
                    "",
                    Reason("more-documents", {"number": document.documents}),
                    Reason("one-document"),
                    name,
                )
            return True
        return False

    def _unknown(self, paths: Sequence[str], name: str, words: str) -> None:
        for path in paths:
            near = nearest(path, self.minor)
            key = path.rpartition(".")[2]
            later = FIELDS.get(path, ("", 0, 0))
            if later[1] > self.minor:
                reason, remedy = Reason("field-too-new", {"since": f"1.{later[1]}"}), Reason("remove-field")
            elif later[2] and later[2] <= self.minor:
                reason, remedy = Reason("field-removed", {"since": f"1.{later[2]}"}), Reason("remove-field")
            elif near and near.casefold() == key.casefold():
                reason, remedy = (
                    Reason("wrong-case", {"field": near}),
                    Reason("rename-field", {"field": near}),
                )
            elif near:
                reason, remedy = (
                    Reason("unknown-field", {"field": near}),
                    Reason("rename-field", {"field": near}),
                )
            else:
                reason, remedy = Reason("unknown-field"), Reason("remove-field")
            self._find(
                "silent", "load", path, words.format(quoted(path)) if words else "", reason, remedy, name
            )

    def _types_fit(self, decoded: Decoded, name: str, stage: Stage, before: str) -> bool:
        for fault in decoded.faults:
            reason, remedy = _type_reason(fault)
            self._find("fatal", stage, fault.path, before + fault.words, reason, remedy, name)
        return not decoded.faults

    def _gates_taken(self, asked: dict[str, bool], stage: Stage, name: str) -> bool:
        refused = gates.refusals(asked, self.minor)
        panics = stage != "gates" and self.minor >= GATES_PANIC_SINCE
        before = (
            "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
            if panics
            else ""
        )
        for gate, words in refused.items():
            reason, remedy = _gate_reason(gate, words, self.minor)
            self._find(
                "crash" if panics else "fatal",
                stage,
                f"featureGates.{gate}",
                before + words,
                reason,
                remedy,
                name,
            )
        return not refused

    # Drop-ins

    def _merged(self, base: dict[str, Any], given: tuple[File, ...]) -> dict[str, Any] | None:
        """`base` is what the file made; what is empty there is not written out and so not there for drop-ins (`omitempty`)."""
        raw: dict[str, Any] = {name: value for name, value in base.items() if value not in ("", {}, [])}
        read = True
        for file in sorted(given, key=lambda each: each.name):
            if not file.name.endswith(".conf"):
                self._find("silent", "merge", "", "", Reason("not-conf"), Reason("rename-conf"), file.name)
            elif not self._is_configuration(file.document, file.name, "merge") or self._named_twice(
                file.document, file.name
            ):
                read = False
            else:
                raw = self._patched(raw, file)
        if not read:
            return None
        decoded = decode(raw, self.minor, any_case=True)
        if not self._types_fit(
            decoded, "", "merge", "failed to unmarshal merged JSON into kubelet configuration: "
        ):
            return None
        if not self._gates_taken(self.flag_gates | decoded.value.get("featureGates", {}), "merge", ""):
            return None
        return self._with_defaults(decoded.value)

    def _named_twice(self, document: Document, name: str) -> bool:
        """Whether a drop-in has a key twice, which the kubelet sees before it looks at kind and version."""
        for path, line in document.duplicates:
            self._find(
                "fatal",
                "merge",
                path,
                _twice(path, line) or "duplicate field",
                Reason("duplicate", {"line": line}),
                Reason("remove-duplicate"),
                name,
            )
        return bool(document.duplicates)

    def _patched(self, raw: dict[str, Any], file: File) -> dict[str, Any]:
        content = {
            name: value for name, value in file.document.value.items() if name not in ("apiVersion", "kind")
        }
        exact = decode(content, self.minor)
        misspelt = [path for path in exact.unknown if "." in path or not self._takes_any_case(path)]
        self._unknown(misspelt, file.name, "")
        for path in exact.unknown:
            if path not in misspelt:
                self._other_case(path, raw, file.name)
        for name, value in content.items():
            if (
                isinstance(value, list)
                and value
                and raw.get(name)
                and value != raw[name]
                and name in self.origin
            ):
                self._find(
                    "silent",
                    "merge",
                    name,
                    "",
                    Reason("list-replaced", {"by": file.name, "of": self.origin[name]}),
                    Reason("whole-list"),
                    file.name,
                )
        if content.get("mergeDefaultEvictionSettings") is True:
            self._find(
                "silent",
                "merge",
                "mergeDefaultEvictionSettings",
                "",
                Reason("merge-in-drop-in"),
                Reason("merge-in-file"),
                file.name,
            )
        self.origin |= dict.fromkeys(content, file.name)
        patched = _merge_patch(raw, content)
        return patched if isinstance(patched, dict) else {}

    def _takes_any_case(self, name: str) -> bool:
        near = nearest(name, self.minor)
        return near is not None and near.casefold() == name.casefold()

    def _other_case(self, name: str, raw: dict[str, Any], where: str) -> None:
        """A field in the wrong case counts after drop-ins, unless the right name is there too and comes later in order."""
        field = nearest(name, self.minor) or name
        loses = field in raw and name < field
        reason = Reason("wrong-case" if loses else "wrong-case-counts", {"field": field})
        self._find(
            "silent" if loses else "warning",
            "merge",
            name,
            "",
            reason,
            Reason("rename-field", {"field": field}),
            where,
        )

    def _with_defaults(self, fields: dict[str, Any]) -> dict[str, Any]:
        """`SetDefaults_KubeletConfiguration`, as far as the checks look. Gates decide about two of them, and are asked as they stand here:
        whoever turns such a gate off later, by a drop-in or a flag, is left with a default that is not allowed any more."""
        made, minor = dict(fields), self.minor
        for name, value in _DEFAULTS.items():
            if not made.get(name):
                made[name] = value
        made.setdefault("enforceNodeAllocatable", ["pods"])
        made.setdefault("cgroupsPerQOS", True)
        made.setdefault("serializeImagePulls", made.get("maxParallelImagePulls", 1) < 2)
        if THROTTLING_SINCE <= minor < NO_THROTTLING_SINCE:
            made.setdefault("memoryThrottlingFactor", 0.9)
        if minor >= RESERVATION_POLICY_SINCE and not made.get("memoryReservationPolicy"):
            made["memoryReservationPolicy"] = "None"
        asked = self.flag_gates | made.get("featureGates", {})
        if gates.enabled(CRASH_LOOP_GATE, asked, minor):
            made["crashLoopBackOff"] = {"maxContainerRestartPeriod": "5m0s"} | (
                made.get("crashLoopBackOff") or {}
            )
        if gates.enabled(PULLED_IMAGES_GATE, asked, minor) and not made.get(
            "imagePullCredentialsVerificationPolicy"
        ):
            made["imagePullCredentialsVerificationPolicy"] = "NeverVerifyPreloadedImages"
        return made

    # Flags

    def _overridden(self, made: dict[str, Any], given: dict[str, Any]) -> dict[str, Any] | None:
        from_files = self.sources.file is not None or self.sources.drop_ins is not None
        for field, value in given.items():
            flag = "--" + next(name for name, of in flags.FIELD_OF.items() if of == field)
            if from_files and field in self.origin and made.get(field) != value and field != "featureGates":
                self._find(
                    "silent",
                    "flags",
                    field,
                    "",
                    Reason("flag-beats-file", {"flag": flag, "file": self.origin[field]}),
                    Reason("remove-one", {"flag": flag}),
                    self.origin[field],
                )
            self.origin[field] = flag
        joined = made.get("featureGates", {}) | given.get("featureGates", {})
        made = made | given
        if joined:
            made["featureGates"] = joined
            if not self._gates_taken(joined, "gates", ""):
                return None
        return made


def _merge_patch(raw: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7396): maps join, null removes, all else replaces."""
    if isinstance(patch, list):
        return [_merge_patch(None, each) for each in patch]
    if not isinstance(patch, dict):
        return patch
    made = dict(raw) if isinstance(raw, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = _merge_patch(made.get(name), value)
    return made


_DEFAULTS: dict[str, Any] = {
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}


def _twice(path: str, line: int) -> str:
    """The YAML library's words for a key that is there already; JSON, which tells no line, has others."""
    return f"line {line}: key {quoted(path.rpartition('.')[2])} already set in map" if line else ""


def _wrong_kind(version: str, kind: str, stage: Stage) -> str:
    if stage == "merge":
        group, slash, number = version.rpartition("/")
        return f"unknown apiVersion/kind: {group if slash else ''}/{number}, Kind={kind}"
    return f"no kind {quoted(kind)} is registered for version {quoted(version)} in scheme"


def _flag_reason(error: flags.FlagError) -> tuple[Reason, Reason]:
    words = str(error)
    if words.startswith("unknown"):
        return Reason("unknown-flag", {"flag": error.flag}), Reason("remove-flag", {"flag": error.flag})
    return Reason("bad-flag", {"flag": error.flag}), Reason("mend-flag", {"flag": error.flag})


def _type_reason(fault: TypeFault) -> tuple[Reason, Reason]:
    value = fault.value
    found = str(value).lower() if isinstance(value, bool) else str(value)[:80]
    if fault.wanted in ("duration", "quantity"):
        return Reason(f"bad-{fault.wanted}", {"value": found}), Reason(f"give-{fault.wanted}")
    if fault.wanted == "string" and isinstance(value, bool | int | float):
        return Reason("unquoted", {"value": found}), Reason("quote", {"value": found})
    return Reason("wrong-type", {"value": found, "type": fault.wanted}), Reason(
        "give-type", {"type": fault.wanted}
    )


def _gate_reason(gate: str, words: str, minor: int) -> tuple[Reason, Reason]:
    if "depends on" in words:
        return Reason("gate-depends", {"gate": gate}), Reason("set-gates", {"gate": gate})
    if "locked" in words:
        return Reason("gate-locked", {"gate": gate}), Reason("remove-gate", {"gate": gate})
    if gates.removed(gate, minor):
        since = f"1.{gates.removed(gate, minor)}"
        return Reason("gate-removed", {"gate": gate, "since": since}), Reason("remove-gate", {"gate": gate})
    if gates.known_since(gate) > minor:
        since = f"1.{gates.known_since(gate)}"
        return Reason("gate-too-new", {"gate": gate, "since": since}), Reason("remove-gate", {"gate": gate})
    return Reason("gate-unknown", {"gate": gate}), Reason("remove-gate", {"gate": gate})
