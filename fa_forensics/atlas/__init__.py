"""What every torch and CUDA library release exports: shipped tables and queries on them."""
