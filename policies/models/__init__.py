"""The tables of this room."""

from policies.models.audit import AuditEntry, AuditHead
from policies.models.cleanup import Cleanup, CleanupPod
from policies.models.policy import Policy, PolicyVersion, Pool
from policies.models.rollout import Act, Notice, OrderKey, Original, Rollout, RolloutNode

__all__ = [
    "Act",
    "AuditEntry",
    "AuditHead",
    "Cleanup",
    "CleanupPod",
    "Notice",
    "OrderKey",
    "Original",
    "Policy",
    "PolicyVersion",
    "Pool",
    "Rollout",
    "RolloutNode",
]
