"""People's decisions on what was held back: asked for, counted and recorded; docs/approvals.md says what to rely on."""

from adjudge.approval._approvals import Approvals
from adjudge.approval._values import Approval, Vote
from adjudge.approval._webhook import Webhook, verify_webhook

__all__ = ["Approval", "Approvals", "Vote", "Webhook", "verify_webhook"]
