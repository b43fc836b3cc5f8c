// The same with the AI SDK, which tries again after any 5xx and 409, whatever the headers say, and after most errors with
// which a stream begins.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const message = /^The agent failed while it answered\./;
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
for (const model of [openai.responses("gpt-x"), openai.chat("gpt-x")]) {
  await assert.rejects(generateText({ model, prompt: "charge 5" }), { message });

  const seen = [];
  const streamed = streamText({ model, prompt: "charge 5", onError: () => {} });
  for await (const part of streamed.fullStream) if (part.type === "error") seen.push(part.error.message);
  assert.equal(seen.length, 1);
  assert.match(seen[0], message);
}
