"""The models of each provider, over one HTTP client."""
