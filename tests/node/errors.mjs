// Errors become the client's own classes, with the parameter that is wrong; a failed run ends its stream.
import assert from "node:assert/strict";
import OpenAI from "openai";

const settings = { maxRetries: 0, defaultHeaders: { "x-request-id": "seen-again" } };
const client = new OpenAI(settings);
const good = { model: "gpt-x", input: "hello" };

async function refused(request, kind, { status, param, code }) {
  await assert.rejects(request, (error) => {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
    assert.equal(error.status, status);
    assert.equal(error.param ?? null, param ?? null);
    if (code) assert.equal(error.code, code);
    assert.ok(error.type && error.message);
    assert.equal(error.requestID, "seen-again");
    return true;
  });
}

const create = (more) => client.responses.create({ ...good, ...more });
await refused(create({ temperature: 3 }), OpenAI.BadRequestError, { status: 400, param: "temperature" });
await refused(create({ input: 7 }), OpenAI.BadRequestError, { status: 400, param: "input" });
await refused(create({ input: [{ type: "nonsense" }] }), OpenAI.BadRequestError, {
  status: 400,
  param: "input[0].type",
});
await refused(create({ stream: true, max_output_tokens: 1 }), OpenAI.BadRequestError, {
  status: 400,
  param: "max_output_tokens",
});
await refused(create({ previous_response_id: "resp_nobody" }), OpenAI.BadRequestError, {
  status: 400,
  param: "previous_response_id",
  code: "previous_response_not_found",
});
await refused(client.responses.retrieve("resp_nobody"), OpenAI.NotFoundError, { status: 404, param: "response_id" });
await refused(client.models.retrieve("no-such-model"), OpenAI.NotFoundError, { status: 404, param: "model" });

const stranger = new OpenAI({ ...settings, apiKey: "not-a-key-of-this-host" });
await refused(stranger.responses.create(good), OpenAI.AuthenticationError, { status: 401 });

const failed = await create({ input: "fail" });
assert.equal(failed.status, "failed");
assert.equal(failed.error.code, "invalid_prompt");
const events = [];
for await (const event of await create({ input: "fail", stream: true })) events.push(event);
assert.equal(events.at(-1).type, "response.failed");
assert.equal(events.at(-1).response.status, "failed");
assert.equal(events.at(-1).response.error.code, "invalid_prompt");
assert.ok(!JSON.stringify(events).includes("the secret reason"));
