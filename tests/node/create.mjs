// One question, one answer; the models; and what a response reports about itself.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();

const response = await client.responses.create({
  model: "gpt-x",
  input: "hello",
  instructions: "Be brief.",
  temperature: 0.5,
  metadata: { ticket: "7" },
});
assert.equal(response.object, "response");
assert.equal(response.status, "completed");
assert.equal(response.output_text, "you said hello");
assert.equal(response.instructions, "Be brief.");
assert.equal(response.temperature, 0.5);
assert.deepEqual(response.metadata, { ticket: "7" });
assert.equal(response.error, null);
assert.equal(response.output.length, 1);
assert.equal(response.output[0].type, "message");
assert.equal(response.output[0].status, "completed");

const items = await client.responses.create({
  model: "gpt-x",
  input: [
    { role: "developer", content: "Speak up." },
    { role: "user", content: [{ type: "input_text", text: "in parts" }] },
  ],
});
assert.equal(items.output_text, "you said in parts");
assert.notEqual(items.id, response.id);

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.deepEqual(models, [response.model]);
assert.equal((await client.models.retrieve(response.model)).id, response.model);
