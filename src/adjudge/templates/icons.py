"""Icons as the shapes inside a 16 by 16 drawing, and which one each state has.

Shapes only, without colour or style: a class of the stylesheet gives both. No two states share an outline, so that
nobody has to tell them apart by colour.
"""

from __future__ import annotations

ICONS = {
    "passed": '<circle class="solid" cx="8" cy="8" r="7"/><path class="cut" d="M4.9 8.3 7 10.4l4.2-4.7"/>',
    "failed": '<path class="solid" d="M5 1h6l4 4v6l-4 4H5l-4-4V5z"/>'
    '<path class="cut" d="m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8"/>',
    "undecided": '<path d="M8 1.2 14.8 8 8 14.8 1.2 8z"/><path class="solid" d="M8 1.2v13.6L1.2 8z"/>',
    "held": '<circle cx="8" cy="8" r="6.6"/><path d="M6.3 5.5v5M9.7 5.5v5"/>',
    "warning": '<path d="M8 1.8 15 14H1z"/><path d="M8 6.4v3.4"/><path d="M8 12v.01"/>',
    "clock": '<circle cx="8" cy="8" r="6.4"/><path d="M8 4.4V8l2.6 1.8"/>',
    "open": '<circle cx="8" cy="8" r="6.4" stroke-dasharray="2.4 2.6"/>',
    "shield": '<path d="M8 1.2 13.6 3v4.6c0 3.4-2.2 5.8-5.6 7.2-3.4-1.4-5.6-3.8-5.6-7.2V3z"/>'
    '<path d="m5.4 8 1.9 1.9 3.4-3.8"/>',
    "check": '<path d="m2.8 8.6 3.4 3.4 7-7.6"/>',
    "cross": '<path d="m3.6 3.6 8.8 8.8m0-8.8-8.8 8.8"/>',
    "person": '<circle cx="8" cy="5" r="2.8"/><path d="M2.4 14c.4-3.2 2.6-4.8 5.6-4.8s5.2 1.6 5.6 4.8"/>',
    "asked": '<path d="M2 8h9.4M8 4.2 11.8 8 8 11.8M14.4 2v12"/>',
    "policy": '<path d="M3.4 14.4V1.8M3.4 2.6h9l-2 3 2 3h-9"/>',
    "rule": '<path d="M2.4 3.4h11.2M2.4 8h11.2M2.4 12.6h7"/>',
    "download": '<path d="M8 2v9M4 7.4 8 11.4l4-4M2.6 14.4h10.8"/>',
    "undo": '<path d="M5.4 2.4 2 5.8l3.4 3.4"/><path d="M2.4 5.8h6.8a4.2 4.2 0 0 1 0 8.4H6"/>',
    "before": '<path d="M10 3 5 8l5 5"/>',
    "after": '<path d="m6 3 5 5-5 5"/>',
    "up": '<path d="M8 13V3.6M4 7.4l4-4 4 4"/>',
    "down": '<path d="M8 3v9.4M4 8.6l4 4 4-4"/>',
    "menu": '<path d="M2 4h12M2 8h12M2 12h12"/>',
    "info": '<circle cx="8" cy="8" r="6.4"/><path d="M8 7.4v3.8"/><path d="M8 4.8v.01"/>',
}

STATES = {
    "passed": ("passed", "passed"),
    "failed": ("failed", "failed"),
    "undecided": ("undecided", "undecided"),
    "held": ("held", "held"),
    "warning": ("undecided", "warning"),
    "running": ("held", "clock"),
    "done": ("passed", "check"),
    "stopped": ("undecided", "warning"),
    "verified": ("passed", "shield"),
    "approved": ("passed", "passed"),
    "denied": ("failed", "failed"),
    "open": ("quiet", "open"),
    "info": ("quiet", "info"),
}
"""Each state's colour class and icon; a page that names another state fails where it is rendered."""
