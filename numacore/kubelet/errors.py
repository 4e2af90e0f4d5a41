"""How the kubelet says no: at start, on admission, or by falling over."""

from __future__ import annotations

TOPOLOGY_AFFINITY = "TopologyAffinityError"
UNEXPECTED = "UnexpectedAdmissionError"
SMT_ALIGNMENT = "SMTAlignmentError"
EMPTY_POD_SHARED_POOL = "EmptyPodSharedPoolError"
PANIC = "Panic"
HANG = "Hang"

NIL_POINTER = "runtime error: invalid memory address or nil pointer dereference"


class EndError(Exception):
    """The kubelet's process ends. `cpu_file`: the text of `cpu_manager_state` where it was written anew before that."""

    cpu_file: str | None = None


class StartError(EndError):
    """The kubelet refuses to start. `alternatives` are messages that it may give as well: Go walks maps in any order."""

    def __init__(self, message: str, alternatives: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.alternatives = alternatives

    def wrapped(self, prefix: str) -> StartError:
        """The same with what a caller puts before it."""
        return StartError(prefix + str(self), tuple(prefix + each for each in self.alternatives))


class AdmissionError(Exception):
    """The kubelet refuses a pod. `reason` stands in the pod's status, the message after "Pod was rejected: "."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class AllocationError(Exception):
    """A manager cannot allocate and gives no reason of its own (kubelet 1.37, cm/admission/errors.go)."""


class PanicError(EndError):
    """The kubelet's process ends by a Go panic. The message is Go's."""


class HangError(Exception):
    """The kubelet's process never comes back from a loop."""


class UnsupportedError(ValueError):
    """More NUMA nodes than the kubelet could get through in any sensible time, or we."""


def index_out_of_range(index: int, length: int) -> PanicError:
    return PanicError(f"runtime error: index out of range [{index}] with length {length}")


def unexpected(error: AllocationError) -> AdmissionError:
    """kubelet 1.37, cm/admission/errors.go `unexpectedAdmissionError`."""
    return AdmissionError(UNEXPECTED, f"Allocate failed due to {error}, which is unexpected")
