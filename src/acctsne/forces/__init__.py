"""How repulsive forces are computed: methods, and the similarity of the map's points."""
