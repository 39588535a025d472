"""Charts of what is measured, expected and decided: one set of definitions for pages, pictures and reports."""
