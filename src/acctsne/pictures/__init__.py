"""Maps as pictures, pages and movies, and what these share."""
