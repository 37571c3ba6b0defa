"""What the notebooks' tables and figures say, computed from predictions."""
