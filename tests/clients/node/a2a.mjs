// The A2A SDK for JavaScript, on both bindings.
import { ClientFactory } from "@a2a-js/sdk/client";

const ANSWER = "You said good day after 0 others.";
const base = process.env.CLIENTS_URL.replace(/\/v1$/, "/a2a/");
const found = {};
let number = 0;

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

function sent(text, more = {}) {
  const part = { content: { $case: "text", value: text }, filename: "", mediaType: "" };
  const message = { messageId: `js-${process.pid}-${(number += 1)}`, role: 1, parts: [part], contextId: "", taskId: "" };
  return { tenant: "", message: { ...message, extensions: [], referenceTaskIds: [], ...more } };
}

function textOf(parts) {
  return parts.map((part) => (part.content.$case === "text" ? part.content.value : "")).join("");
}

const answerOf = (task) => task.artifacts.map((artifact) => textOf(artifact.parts)).join("");
const taskIn = (answer) => (answer.payload?.$case === "task" ? answer.payload.value : (answer.task ?? answer));

for (const [door, binding] of [
  ["A2A JSON-RPC", "JSONRPC"],
  ["A2A HTTP+JSON", "HTTP+JSON"],
]) {
  const factory = new ClientFactory({ ...new ClientFactory().options, preferredTransports: [binding] });
  const client = await factory.createFromUrl(base);

  await check(door, "answer", async () => same(answerOf(taskIn(await client.sendMessage(sent("good day")))), ANSWER));

  await check(door, "stream", async () => {
    const pieces = [];
    for await (const event of client.sendMessageStream(sent("good day"))) {
      if (event.payload.$case === "artifactUpdate") pieces.push(textOf(event.payload.value.artifact.parts));
    }
    same(pieces.join(""), ANSWER);
    same(pieces.length > 1, true);
  });

  await check(door, "history", async () => {
    const first = taskIn(await client.sendMessage(sent("good day")));
    const second = taskIn(await client.sendMessage(sent("and", { contextId: first.contextId })));
    same(answerOf(second), "You said and after 1 others.");
  });

  await check(door, "approval", async () => {
    const task = taskIn(await client.sendMessage(sent("refund 5")));
    same(task.status.state, 6);
    const done = taskIn(await client.sendMessage(sent("yes", { taskId: task.id })));
    same(done.status.state, 3);
    same(answerOf(done).endsWith("The tool said: refunded 5"), true);
    same((await client.getTask({ tenant: "", id: task.id })).id, task.id);
  });
}

console.log(JSON.stringify(found));
