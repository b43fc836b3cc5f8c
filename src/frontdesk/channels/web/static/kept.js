// What the browser keeps for the page. Where it keeps nothing, as in some frames, the page goes on without.

function storage(name) {
  try {
    return window[name];
  } catch {
    return null;
  }
}

function keeping(name) {
  const place = storage(name);
  return {
    get: (key) => place?.getItem(key) ?? null,
    set(key, value) {
      try {
        place?.setItem(key, value);
      } catch {
        // It is full: what would be kept is lost with the tab.
      }
    },
    remove: (key) => place?.removeItem(key),
  };
}

export const inTab = keeping("sessionStorage");
export const inBrowser = keeping("localStorage");
