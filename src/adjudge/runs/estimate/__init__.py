"""An estimate of a run's calls and cost, made before anybody is asked."""
