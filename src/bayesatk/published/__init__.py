"""The published closed forms under their published names: arrays in, numbers out."""
