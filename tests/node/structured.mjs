// An answer in the form that the client asks for.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();
const schema = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};
const text = { format: { type: "json_schema", name: "weather", schema, strict: true } };
const question = { model: "gpt-x", input: "Rome?", text };

const response = await client.responses.create(question);
assert.deepEqual(JSON.parse(response.output_text), { city: "Rome", degrees: 21 });
assert.equal(response.text.format.type, "json_schema");
assert.equal(response.text.format.name, "weather");

const streamed = await client.responses.stream(question).finalResponse();
assert.deepEqual(JSON.parse(streamed.output_text), { city: "Rome", degrees: 21 });

const wrong = { format: { ...text.format, schema: { type: "no such type" } } };
await assert.rejects(client.responses.create({ ...question, text: wrong }), (error) => {
  assert.ok(error instanceof OpenAI.BadRequestError);
  assert.match(error.param, /^text\.format/);
  return true;
});
