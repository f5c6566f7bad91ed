"""Semantic probes: does a tool's output still mean what it meant, and does it keep its contract?"""
