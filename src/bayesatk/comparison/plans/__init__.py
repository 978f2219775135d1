"""How many questions and trials an aim takes."""
