"""The generated reference pages of the documentation, one module for each; `python -m cdb.reference` writes them."""
