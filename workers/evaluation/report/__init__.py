"""Report of an evaluation: one self-contained HTML page with tables and plots."""
