// A run that failed is an answer: the client's own retries, which are on by default, don't ask for it again.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();
const failed = await client.responses.create({ model: "gpt-x", input: "charge 5" });
assert.equal(failed.status, "failed");
assert.equal(failed.error.code, "invalid_prompt");

const events = [];
for await (const event of await client.responses.create({ model: "gpt-x", input: "charge 5", stream: true }))
  events.push(event.type);
assert.equal(events.at(-1), "response.failed");

// Sent twice under one key, it runs once, and both get the same.
const headers = { "Idempotency-Key": "the-third-order" };
const ask = () => client.responses.create({ model: "gpt-x", input: "charge 5" }, { headers });
const [one, other] = [await ask(), await ask()];
assert.deepEqual(one, other);
