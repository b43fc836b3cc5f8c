// One WebSocket: responses one after another, some that only it remembers, and a compaction.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";

const client = new OpenAI();
const socket = new ResponsesWS(client);
const LAST = ["response.completed", "response.failed", "response.incomplete", "error"];

// Without somebody who listens for them, errors would end the process.
socket.on("error", () => {});

function ask(body) {
  return new Promise((resolve) => {
    const hear = (event) => {
      if (!LAST.includes(event.type)) return;
      socket.off("event", hear);
      resolve(event.type === "error" ? event.error : event.response);
    };
    socket.on("event", hear);
    socket.send({ type: "response.create", model: "gpt-x", ...body });
  });
}

const text = (response) => response.output.flatMap((item) => item.content ?? []).map((part) => part.text).join("");

const first = await ask({ input: "one", store: false });
const second = await ask({ input: "two", store: false, previous_response_id: first.id });
assert.equal(text(first), "heard one");
assert.equal(text(second), "heard one, two");
await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);

const stored = await ask({ input: "three" });
assert.equal((await client.responses.retrieve(stored.id)).output_text, "heard three");

const lost = await ask({ input: "four", previous_response_id: "resp_0000" });
assert.equal(lost.code, "previous_response_not_found");
assert.equal(text(await ask({ input: "five", previous_response_id: stored.id })), "heard three, five");

const compacted = await client.responses.compact({ model: "gpt-x", previous_response_id: stored.id });
assert.equal(compacted.object, "response.compaction");
assert.equal(compacted.output.at(-1).type, "compaction");
const further = await ask({ input: [...compacted.output, { role: "user", content: "six" }] });
assert.equal(text(further), "heard three, six");
socket.close();
