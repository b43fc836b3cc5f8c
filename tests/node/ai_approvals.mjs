// The AI SDK names the question that it answers by a reference, and sends both again with every later turn.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const model = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL }).responses("gpt-x");

async function asked(messages, streamed) {
  if (!streamed) return generateText({ model, messages });
  const result = streamText({ model, messages });
  await result.consumeStream();
  return { text: await result.text, content: await result.content, response: await result.response };
}

for (const streamed of [false, true]) {
  const messages = [{ role: "user", content: "pay 5" }];
  const first = await asked(messages, streamed);
  const questions = first.content.filter((part) => part.type === "tool-approval-request");
  assert.equal(questions.length, 2);
  messages.push(...first.response.messages);
  messages.push({
    role: "tool",
    content: questions.map(({ approvalId }) => ({
      type: "tool-approval-response",
      approvalId,
      approved: true,
      providerExecuted: true,
    })),
  });
  const paid = await asked(messages, streamed);
  assert.equal(paid.text, "paid twice");

  messages.push(...paid.response.messages, { role: "user", content: "thanks" });
  const last = await asked(messages, streamed);
  assert.equal(last.text, "you are welcome");
}
