"""Static pages of results: `bakeoff site` writes them, and `bakeoff serve` shows them while a campaign runs."""
