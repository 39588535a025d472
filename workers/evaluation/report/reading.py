"""How to read the report: what stands at its end, one paragraph per text."""

LEVELS = """\
Each level switches on one more source of randomness and keeps those before it. An agent advances while its return is,
with the stated confidence, at least that of the best heuristic on the same episodes but for a margin of practical
equivalence, a share of that heuristic's return (“equivalence margin”); its class is the highest level that it reached
without a break. A level that can't be judged ends the way up, and says why."""

FIGURES = """\
Intervals are Student's t of the seeds, each with its episodes (of the contenders, where several take turns); those of
shares are Jeffreys's. Differences are paired by episode. IQM is the mean of the middle half of the episodes;
probability of improvement is the share of episodes in which a policy does better than the best heuristic, ties counting
half; a performance profile is the share of episodes above each score (Agarwal
et al., 2021, Deep reinforcement learning at the edge of the statistical precipice). A normalised score is 0 for random
choices and 1 for the best heuristic."""

GAP = """\
The train-to-test gap is what an agent earns on seeds that no test uses, less what it earns at a level. “Guarded” is the
share of decisions that the guard answered with a heuristic instead of the agent."""

ALIASING = """\
Observations with conflicting labels are states that the agent sees as one though the right action differs; “return
lost” is what any choice of one action for each of them must cost."""

OFF_POLICY = """\
On runs that really happened, replay puts an agent into each logged run, with that run's own residuals on the domain
model's predictions; the doubly robust estimate corrects the model by importance sampling (Thomas and Brunskill, 2016),
and rests on as many runs as “effective runs” says (Kish, 1965)."""

VERDICT = """\
An agent and all that it is compared with play the same episodes, which none of them learned from; intervals are of
95 %, by Student's t of what varies independently, and differences are paired by episode. Where an agent goes on
learning, each window in which the same agent is challenged asks for more confidence, so that all of its verdicts
together are right with 95 %. It is promoted where, with that confidence, it is at least
as good as the best heuristic and better than what answers now, the champion or a heuristic. Both are judged beyond a
margin of practical equivalence: a loss within it is none, and neither is a gain."""

READING = (LEVELS, FIGURES, GAP, OFF_POLICY, ALIASING)
