"""References of kind `inference`: what no policy can beat, and what the best one reaches where it can be computed."""
