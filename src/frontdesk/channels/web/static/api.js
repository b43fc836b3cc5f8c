// Calls of the host's API; every failure is an ApiError with a code.

const base = document.body.dataset.base;

export class ApiError extends Error {
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }

  // Whether the same request may succeed later.
  get isTemporary() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export function address(path) {
  return `${base}/api/${path}`;
}

export async function call(method, path, body) {
  const options = { method, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    options.headers = { "content-type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address(path), options);
  } catch {
    throw new ApiError("network", "network", 0);
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const { code = "network", message = response.statusText } = answer.error ?? {};
    throw new ApiError(code, message, response.status);
  }
  return answer;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);

export function newId() {
  return crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint32Array(4))].join("-");
}
