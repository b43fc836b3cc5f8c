// Branches: a message that was said in another way has what came before it in common with the conversation that it left.

// The conversation under which the host keeps a message that is shown in another one.
export function holder(chats, id, number) {
  let chat = chats.get(id);
  while (chat?.base && number <= chat.shared) {
    id = chat.base;
    chat = chats.get(id);
  }
  return id;
}

export function rootOf(chats, id) {
  let chat = chats.get(id);
  while (chat?.base) {
    id = chat.base;
    chat = chats.get(id);
  }
  return id;
}

// The conversations that have a version of a message, in the order in which they were made, and the place of the shown one.
export function versions(state, number) {
  const base = number > 1 ? holder(state.chats, state.current, number - 1) : rootOf(state.chats, state.current);
  const others = [...state.chats.values()].filter((chat) => chat.base === base && chat.shared === number - 1);
  if (!others.length) return null;
  others.sort((one, other) => one.born - other.born);
  const first = state.chats.get(base);
  const ids = [...(first && first.last >= number ? [base] : []), ...others.map((chat) => chat.id)];
  const place = ids.indexOf(holder(state.chats, state.current, number));
  return ids.length > 1 && place >= 0 ? { ids, place } : null;
}

// The families of branches, each with the branch that was used last; the main one first.
export function families(chats) {
  const found = new Map();
  for (const chat of chats.values()) {
    const root = chats.get(rootOf(chats, chat.id));
    if (!root) continue;
    const family = found.get(root.id) ?? { root, latest: root, busyUntil: 0 };
    if (chat.at > family.latest.at) family.latest = chat;
    family.busyUntil = Math.max(family.busyUntil, chat.busyUntil ?? 0);
    found.set(root.id, family);
  }
  const rank = (family) => (family.root.id === "main" ? Infinity : family.latest.at);
  return [...found.values()].sort((one, other) => rank(other) - rank(one));
}
