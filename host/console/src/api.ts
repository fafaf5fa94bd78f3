// Requests to the server. Each fails with a `Problem` that says what a form or a page can show.

import { keep, keepGiven, partHeader } from "./part";
import type { Shortage } from "./shapes";

/** A refused request: its words, the messages by field, and the capacity that was short. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly fields: Record<string, string[]> = {},
    readonly shortage: Shortage | null = null,
  ) {
    super(message);
  }
}

/** A fault of the page itself, or of an extension of the browser, as a problem with words. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new Problem(0, `The page could not go on (${reason}). Reload it and try again.`);
}

/** Runs when a request needs a session and there is none. */
export const signedOut = { handler: () => {} };
/** Whether this tab signs its user out, so that the end of the session is no news. */
export const leaving = { now: false };

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export async function request(
  method: Method,
  path: string,
  body?: unknown,
  options: { signal?: AbortSignal; headers?: Record<string, string> } = {},
): Promise<{ value: unknown; headers: Headers }> {
  const headers: Record<string, string> = { accept: "application/json", ...partHeader(), ...options.headers };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  const leaves = path.startsWith("/auth/sign-out");
  if (leaves) leaving.now = true;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: options.signal ?? null,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (leaves) leaving.now = false;
    throw new Problem(0, "The server is out of reach.");
  }
  const text = await response.text();
  let value: unknown = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    // A proxy may answer with a page of its own; the status is all that is known then.
  }
  if (response.ok) {
    keepGiven(response.headers);
    if (leaves) keep(null);
    return { value, headers: response.headers };
  }
  if (leaves) leaving.now = false;
  if (response.status === 401 && path.startsWith("/api/")) signedOut.handler();
  throw problem(response.status, value);
}

/** Sends a request and returns the body of its response. */
export async function send<T>(
  method: Method,
  path: string,
  body?: unknown,
  options?: Parameters<typeof request>[3],
): Promise<T> {
  return (await request(method, path, body, options)).value as T;
}

export const get = <T>(path: string, options?: Parameters<typeof request>[3]) =>
  send<T>("GET", path, undefined, options);

/** The path of the next page, from the `Link` header. */
export function nextPage(headers: Headers): string | null {
  return headers.get("link")?.match(/<([^>]+)>;\s*rel="?next"?/)?.[1] ?? null;
}

/** All pages of a list, one after the other. */
export async function* pages<T>(path: string): AsyncGenerator<T[]> {
  for (let next: string | null = path; next; ) {
    const { value, headers }: { value: unknown; headers: Headers } = await request("GET", next);
    yield value as T[];
    next = nextPage(headers);
  }
}

function problem(status: number, value: unknown): Problem {
  const fallback = `The server answered with status ${status}.`;
  if (typeof value !== "object" || value === null) return new Problem(status, fallback);
  const { detail } = value as { detail?: unknown };
  if (typeof detail === "string") return new Problem(status, detail);
  if (typeof detail === "object" && detail !== null && "message" in detail) {
    const shortage = detail as Shortage;
    return new Problem(status, shortage.message, {}, shortage);
  }
  const fields: Record<string, string[]> = {};
  for (const [field, messages] of Object.entries(value)) {
    if (Array.isArray(messages)) fields[field] = messages.map(String);
  }
  const whole = fields["non_field_errors"]?.join(" ");
  const first = Object.entries(fields)[0];
  return new Problem(status, whole ?? (first ? `${first[0]}: ${first[1].join(", ")}` : fallback), fields);
}
