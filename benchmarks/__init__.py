"""Measurements of gradcheck itself, beside other tools."""
