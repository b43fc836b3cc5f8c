// An AG-UI client: text, a repeated transcript, an approval, several at once, a frontend tool, shared state, a branch.
import assert from "node:assert/strict";

const { HttpAgent } = await import(process.env.AGUI_CLIENT);
const url = process.env.AGUI_URL;
console.warn = (text) => assert.fail(text);

function user(content) {
  return { id: crypto.randomUUID(), role: "user", content };
}

async function run(agent, text, parameters = {}) {
  if (text) agent.addMessage(user(text));
  const { newMessages } = await agent.runAgent(parameters);
  return newMessages;
}

const agent = new HttpAgent({ url, threadId: crypto.randomUUID() });
assert.equal((await run(agent, "hello")).at(-1).content, "1 heard");
assert.equal((await run(agent, "again")).at(-1).content, "2 heard");

// An approval, resumed, and the transcript that the client repeats with it.
await run(agent, "pay 5");
assert.equal(agent.pendingInterrupts.length, 1);
await assert.rejects(run(agent, null), /pending interrupt/);
const [question] = agent.pendingInterrupts;
const answer = { interruptId: question.id, status: "resolved", payload: { approved: true } };
assert.equal((await run(agent, null, { resume: [answer] })).at(-1).content, "paid 5");
assert.deepEqual(agent.pendingInterrupts, []);

// Two at once.
await run(agent, "pay twice");
const resume = agent.pendingInterrupts.map((one, place) => ({
  interruptId: one.id,
  status: "resolved",
  payload: place === 0,
}));
assert.equal(resume.length, 2);
assert.match((await run(agent, null, { resume })).at(-1).content, /paid 1/);

// A tool of the page.
const tools = [{ name: "weather", description: "The weather", parameters: { type: "object", properties: {} } }];
const calls = (await run(agent, "weather", { tools })).at(-1).toolCalls;
assert.equal(calls[0].function.name, "weather");
agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: calls[0].id, content: "sunny" });
assert.equal((await run(agent, null, { tools })).at(-1).content, "sunny");

// State of the page and of a tool.
agent.setState({ steps: ["a"] });
await run(agent, "step");
assert.deepEqual(agent.state, { steps: ["a", "b"] });

// An edited message begins a branch: the agent hears one message before it.
agent.setMessages([...agent.messages.slice(0, 2), user("edited")]);
assert.equal((await run(agent, null)).at(-1).content, "2 heard");

// A page that is loaded again.
const shown = await (await fetch(`${url}/threads/${agent.threadId}`, { headers: { accept: "application/json" } })).json();
assert.deepEqual(shown.messages.map((one) => one.id), agent.messages.map((one) => one.id));

// A new client without history continues.
const other = new HttpAgent({ url, threadId: agent.threadId });
assert.equal((await run(other, "more")).at(-1).content, "3 heard");
