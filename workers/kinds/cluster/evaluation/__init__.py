"""What evaluations and trainings show of clusters that were played."""
