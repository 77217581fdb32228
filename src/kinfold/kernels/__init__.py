"""Numba kernels: arrays in, arrays out. Import a kernel module only when it is called."""
