"""The page of tools/report: load (files), model (runs, medians, stalls), sections (which figures), charts (SVG), page (HTML).

Python's standard library only, and no network: neither for making the page nor for looking at it.
"""
