"""The actions of policies for what is administered here and has no action of AWS: `sluice:NAME` on the resource `*`.

`authorize_admin` decides: the first account may do all of them, its users and roles those that their policies allow,
and other accounts none.
"""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "sluice:GetOverview": "See requests, errors and bytes by operation and bucket, latency, and what needs attention.",
    "sluice:GetQuota": "See the quota of any bucket, and what it holds.",
    "sluice:GetSettings": "See the settings of the gateway, without secrets.",
    "sluice:ListAccounts": "List accounts with their access keys (no secrets) and buckets.",
    "sluice:ListAuditEvents": "Read the log of administrative changes.",
    "sluice:ListBuckets": "See the store and the owner of any bucket.",
    "sluice:ListGateways": "List the gateways of the cluster.",
    "sluice:ListJobs": "See background jobs and their findings.",
    "sluice:ListLoadTests": "See load tests, their targets and their reports.",
    "sluice:ListNotificationTargets": "See the targets of event notifications, their queues and errors.",
    "sluice:ListRequests": "Watch the requests of all accounts live.",
    "sluice:ListStores": "See backing stores: identity, space, health.",
    "sluice:ManageAccounts": "Create, disable and remove accounts, and run IAM in them; not in the first.",
    "sluice:ManageQuota": "Set the quota of any bucket.",
    "sluice:MoveBucket": "Move any bucket to another store.",
    "sluice:PauseJob": "Pause and resume background jobs.",
    "sluice:RunJob": "Start background jobs now.",
    "sluice:RunLoadTest": "Start and cancel load tests.",
}
"""What each action allows, by its name."""
