// The tab's end of the event stream.

import { part } from "../part";
import { type Message, type Reason, Stream } from "./stream";

const NAME = "wharf-events";

/** A message of a tab about itself, or about all tabs. */
export type Order = { join: string | null } | "leave" | { stop: Reason };

/** Leaves the stream. With a reason, the other tabs are signed out too. */
export type Disconnect = (reason: Reason | null) => void;

/** Follows the event stream. */
export function connect(report: (message: Message) => void): Disconnect {
  if (typeof SharedWorker === "function") {
    const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), {
      type: "module",
      name: NAME,
    });
    const tell = (order: Order) => worker.port.postMessage(order);
    worker.port.onmessage = ({ data }: MessageEvent<Message>) => report(data);
    // A worker has no storage with the part of the token.
    const join = () => tell({ join: part() });
    join();
    addEventListener("pagehide", () => tell("leave"));
    addEventListener("pageshow", (event) => event.persisted && join());
    return (reason) => {
      tell("leave");
      if (reason) tell({ stop: reason });
      worker.port.close();
    };
  }
  return lead(report);
}

/** Without shared workers, the tab that holds a lock has the stream and passes its messages on. */
function lead(report: (message: Message) => void): Disconnect {
  let stream: Stream | null = null;
  // Without them, each tab has a stream of its own.
  if (!("locks" in navigator) || typeof BroadcastChannel !== "function") {
    stream = new Stream(report);
    return () => stream?.end();
  }
  const channel = new BroadcastChannel(NAME);
  const left = new AbortController();
  channel.onmessage = ({ data }: MessageEvent<Message | "join">) => {
    if (data !== "join") report(data);
    else if (stream?.last != null) {
      channel.postMessage({ kind: "ready", id: stream.last } satisfies Message);
      channel.postMessage({ kind: "online", online: stream.online } satisfies Message);
    }
  };
  channel.postMessage("join");
  const held = navigator.locks.request(NAME, { signal: left.signal }, () => {
    stream = new Stream((message) => {
      report(message);
      channel.postMessage(message);
    });
    return new Promise<void>((done) => left.signal.addEventListener("abort", () => done()));
  });
  held.catch(() => {
    // The tab was signed out before it had the lock.
  });
  return (reason) => {
    stream?.end();
    if (reason) channel.postMessage({ kind: "signed-out", reason } satisfies Message);
    channel.close();
    left.abort();
  };
}
