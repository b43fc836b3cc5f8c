// The AI SDK, on both APIs.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const ANSWER = "You said good day after 0 others.";
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const openai = createOpenAI({ baseURL: process.env.CLIENTS_URL, apiKey: "any" });
const found = {};

async function check(door, name, work) {
  found[door] ??= {};
  try {
    await work();
    found[door][name] = "yes";
  } catch (error) {
    console.error(error);
    found[door][name] = `${error.name}: ${error.message}`.slice(0, 200);
  }
}

function same(given, wanted) {
  if (JSON.stringify(given) !== JSON.stringify(wanted)) {
    throw new Error(`${JSON.stringify(given)} is not ${JSON.stringify(wanted)}`);
  }
}

for (const [door, model] of [
  ["Chat Completions", openai.chat("Concierge")],
  ["Responses", openai.responses("Concierge")],
]) {
  const ask = (given) => generateText({ model, maxRetries: 0, ...given });

  await check(door, "answer", async () => same((await ask({ prompt: "good day" })).text, ANSWER));

  await check(door, "stream", async () => {
    const pieces = [];
    for await (const piece of streamText({ model, maxRetries: 0, prompt: "good day" }).textStream) pieces.push(piece);
    same(pieces.join(""), ANSWER);
    same(pieces.length > 1, true);
  });

  await check(door, "history", async () => {
    const messages = [
      { role: "user", content: "good day" },
      { role: "assistant", content: ANSWER },
      { role: "user", content: "and" },
    ];
    same((await ask({ messages })).text, "You said and after 1 others.");
  });

  await check(door, "tools", async () => {
    const switch_lamp = tool({
      description: "Switch the lamp.",
      inputSchema: z.object({ on: z.boolean() }),
      execute: async ({ on }) => (on ? "The lamp is on." : "The lamp is off."),
    });
    const told = await ask({ prompt: "the lamp, please", tools: { switch_lamp }, stopWhen: stepCountIs(3) });
    same(told.text, "The tool said: The lamp is on.");
  });

  await check(door, "structure", async () => {
    const schema = z.object({ number: z.number(), view: z.string() });
    const made = await ask({ prompt: "a room", output: Output.object({ schema }) });
    same(made.output, { number: 12, view: "sea" });
  });

  await check(door, "pictures", async () => {
    const content = [
      { type: "text", text: "look" },
      { type: "image", image: PIXEL, mediaType: "image/png" },
    ];
    same((await ask({ messages: [{ role: "user", content }] })).text, "I see a picture.");
  });

  await check(door, "failure", async () => {
    // With the retries that the SDK makes by default.
    const whole = (prompt) => generateText({ model, prompt });
    const streamed = async (prompt) => {
      for await (const part of streamText({ model, prompt, onError: () => {} }).fullStream)
        if (part.type === "error") throw part.error;
    };
    for (const [name, fail] of Object.entries({ whole, streamed })) {
      const order = `${door[0]}-${name}-ai`;
      const shown = await fail(`charge ${order}`).catch((error) => error.message);
      same(shown?.includes?.("The agent failed while it answered.") ?? shown, true);
      same((await ask({ prompt: `charges of ${order}` })).text, "1");
    }
  });
}

console.log(JSON.stringify(found));
