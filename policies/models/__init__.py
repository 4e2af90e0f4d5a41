"""The tables of this room."""

from policies.models.audit import AuditEntry, AuditHead
from policies.models.cleanup import Cleanup, CleanupPod
from policies.models.policy import Policy, PolicyVersion, Pool

__all__ = ["AuditEntry", "AuditHead", "Cleanup", "CleanupPod", "Policy", "PolicyVersion", "Pool"]
