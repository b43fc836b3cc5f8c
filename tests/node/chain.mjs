// A conversation by previous_response_id, with a branch; then what is kept is read, listed and deleted.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();

async function say(input, previous) {
  return client.responses.create({ model: "gpt-x", input, previous_response_id: previous?.id });
}

const first = await say("one");
const second = await say("two", first);
const third = await say("three", second);
const branch = await say("other", first);
assert.equal(first.output_text, "heard one");
assert.equal(third.output_text, "heard one, two, three");
assert.equal(branch.output_text, "heard one, other");
assert.equal(third.previous_response_id, second.id);

const read = await client.responses.retrieve(third.id);
assert.deepEqual(read.output, third.output);
assert.equal(read.output_text, third.output_text);
assert.equal(read.previous_response_id, second.id);

const long = await client.responses.create({
  model: "gpt-x",
  input: ["a", "b", "c", "d", "e"].map((content) => ({ role: "user", content })),
});
const listed = [];
for await (const item of client.responses.inputItems.list(long.id, { order: "asc", limit: 2 })) listed.push(item);
assert.deepEqual(
  listed.map((item) => item.content[0].text),
  ["a", "b", "c", "d", "e"],
);
assert.equal(new Set(listed.map((item) => item.id)).size, 5);
const newest = await client.responses.inputItems.list(long.id, { limit: 1 });
assert.equal(newest.data[0].content[0].text, "e");
assert.equal(newest.has_more, true);

await client.responses.delete(second.id);
await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);
await assert.rejects(client.responses.delete(second.id), OpenAI.NotFoundError);
await assert.rejects(say("five", second), OpenAI.BadRequestError);
assert.equal((await client.responses.retrieve(third.id)).id, third.id);

const unkept = await client.responses.create({ model: "gpt-x", input: "forget me", store: false });
assert.equal(unkept.store, false);
await assert.rejects(client.responses.retrieve(unkept.id), OpenAI.NotFoundError);
