// A function of the client's own: called by the model, run here, and answered, in one go and streamed.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();
const tools = [
  {
    type: "function",
    name: "weather",
    description: "The weather of a city.",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
    strict: true,
  },
];
const question = { model: "gpt-x", input: "How is the weather in Rome?", tools };

async function whole(body) {
  return client.responses.create(body);
}

async function streamed(body) {
  let argumentsSeen = "";
  const response = await client.responses
    .stream(body)
    .on("response.function_call_arguments.delta", (event) => (argumentsSeen += event.delta))
    .finalResponse();
  for (const item of response.output) if (item.type === "function_call") assert.equal(argumentsSeen, item.arguments);
  return response;
}

for (const ask of [whole, streamed]) {
  const asked = await ask(question);
  assert.equal(asked.status, "completed");
  const calls = asked.output.filter((item) => item.type === "function_call");
  assert.equal(calls.length, 1);
  assert.equal(calls[0].name, "weather");
  assert.deepEqual(JSON.parse(calls[0].arguments), { city: "Rome" });
  assert.equal(asked.tools[0].name, "weather");

  const output = { type: "function_call_output", call_id: calls[0].call_id, output: "sunny" };
  const answered = await ask({ model: "gpt-x", previous_response_id: asked.id, input: [output], tools });
  assert.equal(answered.output_text, "It is sunny.");
  assert.equal(answered.previous_response_id, asked.id);

  // In this conversation the call is answered now, and another one was never made.
  for (const call_id of [calls[0].call_id, "call-nobody-made"]) {
    const more = { model: "gpt-x", previous_response_id: answered.id, input: [{ ...output, call_id }], tools };
    await assert.rejects(client.responses.create(more), OpenAI.BadRequestError);
  }
}
