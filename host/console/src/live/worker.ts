// The shared worker: one stream for all tabs.

import type { Order } from "./connect";
import { keep } from "../part";
import { type Message, Stream } from "./stream";

const ports = new Set<MessagePort>();
let stream: Stream | null = null;

function report(message: Message): void {
  for (const port of ports) port.postMessage(message);
}

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<Order>) => {
    if (data === "leave") {
      ports.delete(port);
      return;
    }
    if ("stop" in data) {
      stream?.end();
      report({ kind: "signed-out", reason: data.stop });
      return;
    }
    keep(data.join);
    ports.add(port);
    if (!stream) stream = new Stream(report);
    else if (stream.last === null) stream.open();
    else {
      port.postMessage({ kind: "ready", id: stream.last } satisfies Message);
      port.postMessage({ kind: "online", online: stream.online } satisfies Message);
    }
  };
};
