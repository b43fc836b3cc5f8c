// A tool of the host's that waits for a human: approved, rejected, and asked about in a stream.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI();

function question(response) {
  const [item, ...more] = response.output.filter((one) => one.type === "mcp_approval_request");
  assert.deepEqual(more, []);
  assert.equal(item.name, "pay");
  assert.deepEqual(JSON.parse(item.arguments), { amount: 5 });
  return item;
}

function answer(response, approve, reason) {
  const item = { type: "mcp_approval_response", approval_request_id: question(response).id, approve, reason };
  return { model: "gpt-x", previous_response_id: response.id, input: [item] };
}

const asked = await client.responses.create({ model: "gpt-x", input: "pay 5" });
const paid = await client.responses.create(answer(asked, true));
assert.equal(paid.output_text, "paid 5");

// The same word again counts for nothing.
await assert.rejects(client.responses.create(answer(asked, true)), OpenAI.APIError);

const declined = await client.responses.create({ model: "gpt-x", input: "pay 5" });
const unpaid = await client.responses.create(answer(declined, false, "too much"));
assert.equal(unpaid.output_text, "not paid");

const shown = [];
const streamed = await client.responses
  .stream({ model: "gpt-x", input: "pay 5" })
  .on("response.output_item.done", (event) => shown.push(event.item))
  .finalResponse();
assert.deepEqual(shown.at(-1), question(streamed));
const last = await client.responses.stream(answer(streamed, true)).finalResponse();
assert.equal(last.output_text, "paid 5");

// A question that nobody asked.
const forged = { type: "mcp_approval_response", approval_request_id: "mcpr_made_up", approve: true };
const refused = client.responses.create({ model: "gpt-x", previous_response_id: last.id, input: [forged] });
await assert.rejects(refused, OpenAI.APIError);
