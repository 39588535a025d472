"""Detection of a command's iterations: in its reports to the launcher's file, in its output, or in its own log file."""
