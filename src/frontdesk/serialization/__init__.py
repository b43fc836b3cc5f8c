"""The JSON codecs of stored records."""
