"""The versions, one dated file each."""
