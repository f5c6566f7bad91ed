"""What programs ask: one router a file."""
