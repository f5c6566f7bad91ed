"""Decide a recorded run again, under another policy, without asking anybody."""
