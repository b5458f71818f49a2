"""Every verb: the protocol.

The rule: one verb has one name and one sentence, in its class here, its Lua file, its test, its
route and its command. A verb is a frozen value that names its script and its arguments and decodes
the reply; it does no I/O, so both clients, the pipelines and the tests share it.
"""

from fairlane.verbs.abnormal import ReadAbnormal, ReportAbnormal
from fairlane.verbs.accept import Enqueue, EnqueueMany
from fairlane.verbs.cancel import CancelMany
from fairlane.verbs.dead import DeadLetters, Drop, Redrive
from fairlane.verbs.devices import Configure, Devices, InspectDevice, Reconcile
from fairlane.verbs.epoch import Acknowledge, CheckEpoch, InspectEpoch
from fairlane.verbs.explain import Explain
from fairlane.verbs.files import DoomFiles, ForgetFiles, KeepFile
from fairlane.verbs.history import ReadHistory, RecordMinute
from fairlane.verbs.levels import (
    InspectLanes,
    InspectShares,
    InspectTimes,
    InspectTotals,
    Measure,
    Overload,
    ReadWatermark,
    Watermark,
)
from fairlane.verbs.processes import Announce, InspectProcesses, Withdraw
from fairlane.verbs.repair import (
    CheckDevices,
    CheckSums,
    CheckTasks,
    Members,
    MendDevices,
    MendSums,
    MendTasks,
    SumPage,
)
from fairlane.verbs.search import FindTasks
from fairlane.verbs.setup import Join, Migrate
from fairlane.verbs.tasks import (
    Cancel,
    Defer,
    Fail,
    Finish,
    InspectTask,
    Purge,
    Quarantine,
    Start,
    Sweep,
)
from fairlane.verbs.tokens import IssueToken, ReadRevocations, RevokeToken, Tokens
from fairlane.verbs.turns import Claim, ClaimDevice, Pop, Release, Renew
from fairlane.verbs.verb import Verb, every_verb
from fairlane.verbs.workers import Deregister, Heartbeat, InspectWorkers, Lead

__all__ = [
    "Acknowledge",
    "Announce",
    "Cancel",
    "CancelMany",
    "CheckDevices",
    "CheckEpoch",
    "CheckSums",
    "CheckTasks",
    "Claim",
    "ClaimDevice",
    "Configure",
    "DeadLetters",
    "Defer",
    "Deregister",
    "Devices",
    "DoomFiles",
    "Drop",
    "Enqueue",
    "EnqueueMany",
    "Explain",
    "Fail",
    "FindTasks",
    "Finish",
    "ForgetFiles",
    "Heartbeat",
    "InspectDevice",
    "InspectEpoch",
    "InspectLanes",
    "InspectProcesses",
    "InspectShares",
    "InspectTask",
    "InspectTimes",
    "InspectTotals",
    "InspectWorkers",
    "IssueToken",
    "Join",
    "KeepFile",
    "Lead",
    "Measure",
    "Members",
    "MendDevices",
    "MendSums",
    "MendTasks",
    "Migrate",
    "Overload",
    "Pop",
    "Purge",
    "Quarantine",
    "ReadAbnormal",
    "ReadHistory",
    "ReadRevocations",
    "ReadWatermark",
    "Reconcile",
    "RecordMinute",
    "Redrive",
    "Release",
    "Renew",
    "ReportAbnormal",
    "RevokeToken",
    "Start",
    "SumPage",
    "Sweep",
    "Tokens",
    "Verb",
    "Watermark",
    "Withdraw",
    "every_verb",
]
