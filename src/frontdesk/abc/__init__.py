"""Every seam, one short file each."""
