"""The service's nouns on the command line: what each has, said once; the commands follow from that."""
