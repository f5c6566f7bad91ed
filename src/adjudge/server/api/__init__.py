"""The endpoints for programs: one router a file."""
