// A conversation: made, filled, gone on with, listed page by page, cut and deleted.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 });
const user = (content) => ({ type: "message", role: "user", content });
const listed = async (id, query) => {
  const found = [];
  for await (const item of client.conversations.items.list(id, query)) found.push(item);
  return found;
};
const said = (items) => items.map((item) => item.content[0].text);

const made = await client.conversations.create({ items: [user("one")], metadata: { topic: "tea" } });
assert.equal(made.object, "conversation");
assert.deepEqual(made.metadata, { topic: "tea" });
assert.deepEqual(await client.conversations.retrieve(made.id), made);
const changed = await client.conversations.update(made.id, { metadata: { topic: "milk" } });
assert.deepEqual(changed.metadata, { topic: "milk" });

const first = await client.responses.create({ model: "m", input: "two", conversation: made.id });
assert.equal(first.output_text, "heard one, two");
assert.equal(first.conversation.id, made.id);

const added = await client.conversations.items.create(made.id, { items: [user("three")] });
assert.deepEqual(said(added.data), ["three"]);

const stream = await client.responses.create({
  model: "m",
  input: "four",
  conversation: { id: made.id },
  stream: true,
});
let last;
for await (const event of stream) last = event;
assert.equal(last.response.output_text ?? last.response.output[0].content[0].text, "heard one, two, three, four");
assert.equal(last.response.conversation.id, made.id);

const items = await listed(made.id, { order: "asc", limit: 2 });
const all = ["one", "two", "heard one, two", "three", "four", "heard one, two, three, four"];
assert.deepEqual(said(items), all);
assert.deepEqual(said(await listed(made.id, { limit: 4 })), all.toReversed());
const here = { conversation_id: made.id };
assert.deepEqual(await client.conversations.items.retrieve(items[1].id, here), items[1]);
assert.equal((await client.conversations.items.delete(items[1].id, here)).id, made.id);
await assert.rejects(client.conversations.items.retrieve(items[1].id, here), OpenAI.NotFoundError);

const third = await client.responses.create({ model: "m", input: "five", conversation: made.id });
assert.equal(third.output_text, "heard one, three, four, five");

await assert.rejects(
  client.responses.create({ model: "m", input: "x", conversation: made.id, previous_response_id: third.id }),
  OpenAI.BadRequestError,
);
const gone = await client.conversations.delete(made.id);
assert.deepEqual(gone, { id: made.id, object: "conversation.deleted", deleted: true });
await assert.rejects(client.conversations.retrieve(made.id), OpenAI.NotFoundError);
await assert.rejects(
  client.responses.create({ model: "m", input: "x", conversation: made.id }),
  OpenAI.NotFoundError,
);
