"""How far a judge may be believed: numbers in, numbers out."""
