// Puts streams of events, one JSON list a line, through the verifier of a client, and prints what each violates.
import { readFileSync } from "node:fs";

const { verifyEvents, transformChunks } = await import(process.env.AGUI_CLIENT);
const { from, lastValueFrom, toArray } = await import("rxjs");

for (const line of readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean)) {
  const events = from(JSON.parse(line)).pipe(transformChunks(), verifyEvents(), toArray());
  try {
    await lastValueFrom(events);
    console.log("ok");
  } catch (error) {
    console.log(String(error.message).split("\n")[0]);
  }
}
