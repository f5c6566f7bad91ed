"""Certificates: what was measured about a judge, bound to exactly that judge, and gates that demand one."""
