// A stream in the background is left after a few events, and taken up again; another run is polled, and one is cancelled.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();
const question = { model: "gpt-x", input: "hello", background: true };

const read = [];
for await (const event of await client.responses.create({ ...question, stream: true })) {
  read.push(event);
  if (read.length === 4) break;
}
const id = read[0].response.id;
assert.equal(read[0].response.status, "queued");
for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 3 })) read.push(event);
assert.deepEqual(
  read.map((event) => event.sequence_number),
  read.map((_, place) => place),
);
const deltas = read.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta);
const last = read.at(-1);
assert.equal(last.type, "response.completed");
assert.equal(deltas.join(""), "you said hello");
assert.equal(last.response.output[0].content[0].text, "you said hello");

const again = [];
for await (const event of await client.responses.retrieve(id, { stream: true })) again.push(event);
assert.deepEqual(again, read);

let response = await client.responses.create(question);
assert.equal(response.status, "queued");
while (response.status === "queued" || response.status === "in_progress") {
  response = await client.responses.retrieve(response.id);
}
assert.equal(response.output_text, "you said hello");

// What has ended stays as it is.
assert.equal((await client.responses.cancel(response.id)).status, "completed");
