"""The stages of a build: compose, complete, bind. Import them from `workers.learning.build`."""
