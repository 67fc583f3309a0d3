"""The binaries, one thin file each."""
