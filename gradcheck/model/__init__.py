"""Frozen records and enums, and their dict codec; imports nothing else of ours."""
