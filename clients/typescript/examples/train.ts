/** Registers a workload, runs three epochs under decisions, and ends: `npm run example -- http://127.0.0.1:8080`. */
import { answered, patiently, steward, StewardError, type AnyDecision, type components } from "../src/index.js";

const client = steward(process.argv[2] ?? "http://127.0.0.1:8080", process.env["STEWARD_API_KEY"]);

const workload = {
  name: "typescript-example",
  kind: "iterative",
  resources: [{ name: "gpus", unit: "gpu", minimum: 1, maximum: 8, step: 1, max_steps: 2, initial: 4 }],
  metrics: [{ name: "iteration_seconds", unit: "s", target: 60, goal: "at_most", scope: "run" }],
  features: [{ name: "batch", minimum: 1, maximum: 512 }],
  iterations: 3,
} satisfies components["schemas"]["IterativeSpec"];

/** What a decision says, of whatever kind: each kind has members of its own. */
function said(decision: AnyDecision): string {
  switch (decision.kind) {
    case "iterative":
      return `${decision.reason.text} ${JSON.stringify(decision.allocation)}`;
    case "workflow":
      return decision.placements.map((placement) => `${placement.task} on ${placement.node}`).join(", ");
    case "inference":
      return `${decision.start.length} batches start`;
    case "cluster":
      return `${decision.changes.length} jobs change`;
  }
}

function allocated(decision: AnyDecision): Readonly<Record<string, number>> {
  if (decision.kind !== "iterative") {
    throw new Error(`a workload of kind iterative was answered by a decision of kind ${decision.kind}`);
  }
  return decision.allocation;
}

answered(await client.POST("/workloads", { body: workload }));
const run = answered(await client.POST("/runs", { body: { workload: workload.name } }));
let decision = run.decision;
for (let iteration = 0; iteration < workload.iterations; iteration += 1) {
  console.log(said(decision));
  const report = {
    kind: "iterative",
    allocation: allocated(decision),
    metrics: { iteration_seconds: 20 },
    features: { batch: 128 },
  } satisfies components["schemas"]["IterationReport"];
  const path = { run: run.id, iteration };
  decision = answered(
    await patiently(() => client.PUT("/runs/{run}/iterations/{iteration}", { params: { path }, body: report })),
  );
}
const asked = answered(await client.GET("/runs/{run}", { params: { path: { run: run.id } } }));
console.log(`${asked.iterations} iterations are reported`);
answered(await client.PATCH("/runs/{run}", { params: { path: { run: run.id } }, body: { state: "finished" } }));

const again = await client.POST("/runs", { body: { workload: "nobody's" } });
try {
  answered(again);
} catch (error) {
  if (!(error instanceof StewardError)) throw error;
  console.log(error.message);
}
