"""Held out: what a customer would check."""
