"""Does any verdict say more than is so? Models are drawn, judged, and run in every way that the verdict covers."""
