// The same with the AI SDK, which tries again after any 5xx and 409, whatever the headers say.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).responses("gpt-x");
await assert.rejects(generateText({ model, prompt: "charge 5" }), (error) => {
  assert.ok(!/attempts|retries/i.test(error.message), error.message);
  return true;
});

const seen = [];
const streamed = streamText({ model, prompt: "charge 5", onError: ({ error }) => seen.push(error) });
for await (const part of streamed.fullStream) if (part.type === "error") seen.push(part.error);
assert.ok(seen.length > 0);
