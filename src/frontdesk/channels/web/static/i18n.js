// The sentences of the page, in the language that the host has chosen by what the browser asks for.

// The host makes this module of the catalogue in that language.
import { catalogue } from "./catalogue.js";

export function say(key, values = {}) {
  const sentence = catalogue[key] ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export function sayError(error) {
  return catalogue[`error_${error.code}`] ?? error.message;
}
