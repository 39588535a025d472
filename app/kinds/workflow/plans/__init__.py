"""Plans of live workflows: which task runs where and after which, searched in a process of its own."""
