// The same answer in events: as they come, and through the helper, which checks their order and puts them together.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();
const question = { model: "gpt-x", input: "hello" };

const events = [];
for await (const event of await client.responses.create({ ...question, stream: true })) events.push(event);
assert.deepEqual(
  events.map((event) => event.sequence_number),
  events.map((_, place) => place),
);
assert.deepEqual(
  events.map((event) => event.type),
  [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ],
);
const last = events.at(-1).response;
assert.equal(events[0].response.id, last.id);
assert.equal(events[0].response.status, "in_progress");
assert.equal(last.status, "completed");

let text = "";
const stream = client.responses.stream(question).on("response.output_text.delta", (event) => {
  text += event.delta;
  assert.equal(event.snapshot, text);
});
const final = await stream.finalResponse();
assert.equal(text, "you said hello");
assert.equal(final.output_text, text);
assert.equal(final.status, "completed");

// The stored response is the one that was streamed.
const stored = await client.responses.retrieve(final.id);
assert.deepEqual(stored.output[0].content[0].text, text);
assert.equal(stored.output[0].id, final.output[0].id);

// Leaving the loop hangs up.
for await (const event of await client.responses.create({ ...question, stream: true })) {
  if (event.type === "response.created") break;
}
