// The part of the session's token that no cookie has. Over plain HTTP, a browser sends the cookie to all
// ports of the host, and so to servers in instances. The part stays in the storage of this origin.

/** The header with the part, in both directions. */
const HEADER = "wharf-session";
/** Its place, which the explorer of the API reads too. */
const PLACE = "session-part";

/** The part where there is no storage: in a worker, or in a browser that blocks it. */
let held: string | null = null;

/** The part; none over https, where the cookie is the whole token. */
export function part(): string | null {
  try {
    return held ?? localStorage.getItem(PLACE);
  } catch {
    return held;
  }
}

/** Keeps another part, or none. */
export function keep(next: string | null): void {
  held = null;
  try {
    localStorage.removeItem(PLACE);
    if (next) localStorage.setItem(PLACE, next);
  } catch {
    held = next;
  }
}

/** Keeps the part that a response gives. */
export function keepGiven(headers: Headers): void {
  const given = headers.get(HEADER);
  if (given) keep(given);
}

/** The header of a request. */
export function partHeader(): Record<string, string> {
  const now = part();
  return now ? { [HEADER]: now } : {};
}

/**
 * The parameter of a WebSocket or an event stream, with which browsers send no header of a page's; empty
 * over https.
 */
export async function ticket(): Promise<string> {
  const headers = partHeader();
  if (Object.keys(headers).length === 0) return "";
  const response = await fetch("/auth/ticket/", { method: "POST", headers });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const { ticket } = (await response.json()) as { ticket: string };
  return `&ticket=${encodeURIComponent(ticket)}`;
}
