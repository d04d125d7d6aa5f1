"""Mutations of the engine, and the tests that must see them."""
