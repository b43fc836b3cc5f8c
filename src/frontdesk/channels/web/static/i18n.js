// The sentences of the page, from a catalogue in the reader's language.

let catalogue = {};

export async function loadCatalogue(files, languages) {
  const wanted = (navigator.languages || [navigator.language]).map((tag) => tag.toLowerCase().split("-")[0]);
  const language = wanted.find((tag) => languages.includes(tag)) || languages[0];
  catalogue = await (await fetch(`${files}/${language}.json`)).json();
  document.documentElement.lang = language;
  return language;
}

export function say(key, values = {}) {
  const sentence = catalogue[key] ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export function sayError(error) {
  return catalogue[`error_${error.code}`] ?? error.message;
}
