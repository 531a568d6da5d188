"""One history of a shop, from which every format's dumps are rendered."""
