"""What is measured, against which peer, and how to rerun it."""
