"""The generated reference pages of the documentation, one module for each; `python -m docs.reference` writes them."""
