// The runtime of CopilotKit by its fetch handler, without a browser: a run, an interrupt and its answer.
import assert from "node:assert/strict";
import { CopilotRuntime, createCopilotEndpoint, InMemoryAgentRunner } from "@copilotkit/runtime/v2";
import { HttpAgent } from "@ag-ui/client";
const url = `${process.env.CLIENTS_URL}/agui`;
const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url }) }, runner: new InMemoryAgentRunner() });
const endpoint = createCopilotEndpoint({ runtime, basePath: "/api" });
async function run(body) {
  const request = new Request("http://localhost/api/agent/default/run", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ tools: [], context: [], state: {}, forwardedProps: {}, ...body }) });
  const text = await (await endpoint.fetch(request)).text();
  return text.split("\n").filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)));
}
const threadId = crypto.randomUUID();
const messages = [{ id: "u1", role: "user", content: "pay 5" }];
const first = await run({ threadId, runId: crypto.randomUUID(), messages });
const last = first.at(-1);
assert.equal(last.type, "RUN_FINISHED", JSON.stringify(first));
assert.equal(last.outcome.type, "interrupt");
const [question] = last.outcome.interrupts;
const second = await run({ threadId, runId: crypto.randomUUID(), messages, resume: [{ interruptId: question.id, status: "resolved", payload: { approved: true } }] });
assert.equal(second.filter((e) => e.type === "TEXT_MESSAGE_CONTENT").map((e) => e.delta).join(""), "paid 5", JSON.stringify(second));
console.log("ok");
process.exit(0);
