// The tab's end of the event stream.

import { type Message, Stream } from "./stream";

const NAME = "wharf-events";

/** Follows the event stream. Returns a function that ends it for all tabs, for signing out. */
export function connect(report: (message: Message) => void): () => void {
  if (typeof SharedWorker === "function") {
    const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), {
      type: "module",
      name: NAME,
    });
    worker.port.onmessage = ({ data }: MessageEvent<Message>) => report(data);
    worker.port.postMessage("join");
    addEventListener("pagehide", () => worker.port.postMessage("leave"));
    addEventListener("pageshow", (event) => event.persisted && worker.port.postMessage("join"));
    return () => {
      worker.port.postMessage("leave");
      worker.port.postMessage("stop");
      worker.port.close();
    };
  }
  return lead(report);
}

/** Without shared workers, the tab that holds a lock has the stream and passes its messages on. */
function lead(report: (message: Message) => void): () => void {
  let stream: Stream | null = null;
  const end = () => {
    stream?.close();
    if (stream) stream.last = null;
  };
  // Without them, each tab has a stream of its own.
  if (!("locks" in navigator) || typeof BroadcastChannel !== "function") {
    stream = new Stream(report);
    return end;
  }
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }: MessageEvent<Message | "join" | "stop">) => {
    if (data === "stop") {
      end();
      report({ kind: "signed-out" });
    } else if (data !== "join") report(data);
    else if (stream?.last != null) {
      channel.postMessage({ kind: "ready", id: stream.last } satisfies Message);
      channel.postMessage({ kind: "online", online: stream.online } satisfies Message);
    }
  };
  channel.postMessage("join");
  void navigator.locks.request(NAME, () => {
    stream = new Stream((message) => {
      report(message);
      channel.postMessage(message);
    });
    return new Promise<never>(() => {});
  });
  return () => {
    end();
    channel.postMessage("stop");
  };
}
