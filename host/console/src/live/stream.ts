// The one connection to the event stream. It runs in a shared worker where there is one, else in a
// tab that passes the messages on.

import { partHeader, ticket } from "../part";
import type { Happening } from "../shapes";

/** Lists that change without an event. */
const LISTS = ["audit", "backups", "buckets", "host-keys", "keys", "ssh-keys", "webhooks"] as const;
export type List = (typeof LISTS)[number];

/** Why nobody is signed in any more: in another tab, as the server says, or for an unknown reason. */
export type Reason = "tab" | "ended" | "expired" | "disabled" | "unknown";

export type Message =
  | { kind: "ready"; id: number }
  | { kind: "event"; event: Happening }
  | { kind: "reset" }
  | { kind: "changed"; lists: readonly List[] }
  | { kind: "online"; online: boolean }
  | { kind: "signed-out"; reason: Reason };

/** Pauses before a new connection after a refused one, in milliseconds. */
const PAUSES = [500, 1000, 2000, 4000, 8000];
/** A longer gap between two ticks means that the machine was asleep. */
const TICK = 5000;
const ASLEEP = 20_000;

/** An event stream that mends itself. */
export class Stream {
  private source: EventSource | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private tick = Date.now();
  /** Whether there is a user, and a connection or an attempt at one. */
  private follows = false;
  /** The number of the attempt, so that an earlier one changes nothing. */
  private attempt = 0;
  /** The number of the last event, and none before the first connection. */
  last: number | null = null;
  online = false;

  constructor(private readonly report: (message: Message) => void) {
    setInterval(() => {
      const now = Date.now();
      if (now - this.tick > ASLEEP && this.follows) this.open();
      this.tick = now;
    }, TICK);
    globalThis.addEventListener?.("online", () => this.follows && this.open());
    this.open();
  }

  /** Connects again, from the last event on. */
  open(): void {
    this.disconnect();
    this.follows = true;
    const attempt = this.attempt;
    ticket().then(
      (ticket) => attempt === this.attempt && this.connect(ticket),
      () => this.refused(attempt),
    );
  }

  private connect(ticket: string): void {
    const after = this.last === null ? "" : `&after=${this.last}`;
    const source = new EventSource(`/api/event/?changes=true${after}${ticket}`);
    this.source = source;
    const attempt = this.attempt;
    source.addEventListener("ready", (message) => {
      const first = this.last === null;
      this.last = Number(message.lastEventId);
      this.failures = 0;
      this.set(true);
      if (first) this.report({ kind: "ready", id: this.last });
      // Messages about lists have no number, so those before the connection are lost.
      this.report({ kind: "changed", lists: LISTS });
    });
    source.addEventListener("reset", () => this.report({ kind: "reset" }));
    source.addEventListener("event", (message) => {
      this.last = Number(message.lastEventId);
      this.report({ kind: "event", event: JSON.parse(message.data) as Happening });
    });
    source.addEventListener("changed", (message) => {
      const { lists } = JSON.parse(message.data) as { lists: List[] };
      this.report({ kind: "changed", lists });
    });
    source.addEventListener("end", (message) => {
      const { reason } = JSON.parse(message.data) as { reason: Reason };
      this.end();
      this.report({ kind: "signed-out", reason });
    });
    source.onerror = () => {
      this.set(false);
      // The browser connects again by itself, unless the server refused the connection. A ticket is spent.
      if (ticket || source.readyState === EventSource.CLOSED) void this.refused(attempt);
    };
  }

  /** Forgets the user. A later connection begins anew. */
  end(): void {
    this.disconnect();
    this.follows = false;
    this.last = null;
  }

  private disconnect(): void {
    this.attempt++;
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  private async refused(attempt: number): Promise<void> {
    if (attempt !== this.attempt) return;
    this.source?.close();
    this.set(false);
    const pause = PAUSES[Math.min(this.failures++, PAUSES.length - 1)];
    const status = await fetch("/api/session/", { headers: partHeader() }).then(
      (response) => response.status,
      () => 0,
    );
    if (attempt !== this.attempt) return;
    if (status === 401) {
      this.end();
      this.report({ kind: "signed-out", reason: "unknown" });
    } else {
      this.retry = setTimeout(() => this.open(), pause);
    }
  }

  private set(online: boolean): void {
    if (this.online !== online) this.report({ kind: "online", online });
    this.online = online;
  }
}
