"""What runs came to: numbers with what they rest on, and the cases worth reading."""
