"""People's decisions on what was held back: asked for, counted and recorded; docs/approvals.md says what to rely on."""
