// A terminal in an instance. The connection mends itself and comes back to the shell that it had.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asProblem, get, Problem } from "../api";
import { commands } from "../commands";
import { Command, Copy, Head, State } from "../parts/basics";
import { ticket } from "../part";
import type { Instance } from "../shapes";
import { find, put } from "../store";

const PROTOCOL = "wharf.terminal.v1";
/** Pauses before a new connection, in milliseconds. */
const PAUSES = [300, 1000, 2000, 4000];
/** The largest message to the server, in bytes. A paste is split into such. */
const LARGEST = 64 * 1024;
/** Unpainted output, in bytes, at which the server pauses, and at which it goes on. */
const HIGH = 256 * 1024;
const LOW = 32 * 1024;
/** The status of a plain request whose upgrade would be accepted. */
const UPGRADE_REQUIRED = 426;
/** The code with which a server that stops closes its connections. */
const GOING_AWAY = 1001;
const NEW_SHELL = "\r\n\x1b[2mThe earlier shell has ended. This is a new one.\x1b[0m\r\n";

type Phase = "connecting" | "open" | "lost" | "ended";

export function TerminalPage({ name }: { name: string }) {
  const instance = find(name);
  const missing = useSignal<string | null>(null);
  useEffect(() => {
    if (instance) return;
    get<Instance>(`/api/instance/${encodeURIComponent(name)}/`).then(put, (error: unknown) => {
      missing.value = asProblem(error).message;
    });
  }, [name]);
  return (
    <>
      <p class="crumb">
        <a href="/instances">Instances</a> / <a href={`/instances/${name}`}>{name}</a> /
      </p>
      <Head title={`Terminal of ${name}`}>
        {instance && <State state={instance.state} />}
        {instance?.ssh_command && <Copy text={instance.ssh_command} label="Copy SSH command" what="the SSH command" />}
      </Head>
      {missing.value && <p role="alert">{missing.value}</p>}
      {instance && instance.state !== "running" && (
        <p class="none">
          The terminal opens once {name} is running. <a href={`/instances/${name}`}>Show {name}</a>
        </p>
      )}
      {instance?.state === "running" && <Screen key={instance.uuid} instance={instance} />}
      <Command line={commands.terminal(name)} note="opens it in a terminal of your own." />
    </>
  );
}

function Screen({ instance }: { instance: Instance | Parameters<typeof put>[0] }) {
  const place = useRef<HTMLDivElement>(null);
  const phase = useSignal<Phase>("connecting");
  const words = useSignal("");
  const again = useSignal(0);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const ended = new AbortController();
    phase.value = "connecting";
    void run(element, instance.uuid, ended.signal, (to, text = "") => {
      phase.value = to;
      words.value = text;
    });
    return () => ended.abort();
  }, [again.value]);
  return (
    <section class="panel screen" aria-label="Terminal">
      <div ref={place} class="xterm-place" />
      <p class="screen-state" role="status">
        {phase.value === "connecting" && "Connecting"}
        {phase.value === "open" && "Connected. Ctrl-Shift-C copies, Ctrl-Shift-V pastes."}
        {phase.value === "lost" && "The connection is lost and comes back by itself."}
        {phase.value === "ended" && (
          <>
            {words.value}{" "}
            <button type="button" class="small" onClick={() => again.value++}>
              Open again
            </button>
          </>
        )}
      </p>
    </section>
  );
}

type Report = (phase: Phase, words?: string) => void;

/** Shows a terminal in `element` until the signal. */
async function run(element: HTMLElement, uuid: string, signal: AbortSignal, report: Report): Promise<void> {
  const { FitAddon, Terminal } = await import("../parts/xterm");
  if (signal.aborted) return;
  element.replaceChildren();
  const terminal = new Terminal({
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    fontSize: 14,
    scrollback: 10_000,
    screenReaderMode: true,
    theme: { background: "#0b0f14", foreground: "#dfe6ec", cursor: "#4cc3d4", selectionBackground: "#2b4a58" },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  terminal.focus();
  const link = new Link(uuid, terminal, report);
  const text = new TextEncoder();
  terminal.onData((data) => link.type(text.encode(data)));
  terminal.onBinary((data) => link.type(Uint8Array.from(data, (c) => c.charCodeAt(0))));
  terminal.onResize(() => link.resize());
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey) return true;
    if (event.code === "KeyC") void navigator.clipboard?.writeText(terminal.getSelection());
    // The browser pastes by itself.
    return event.code !== "KeyC" && event.code !== "KeyV";
  });
  const size = new ResizeObserver(() => fit.fit());
  size.observe(element);
  signal.addEventListener("abort", () => {
    size.disconnect();
    link.leave();
    terminal.dispose();
  });
  link.open();
}

interface Screenlike {
  cols: number;
  rows: number;
  write: (data: Uint8Array | string, done?: () => void) => void;
  reset: () => void;
}

/** The connection of one terminal. A reload of the page comes back to the shell that it left. */
class Link {
  private socket: WebSocket | null = null;
  private failures = 0;
  private over = false;
  private retry: ReturnType<typeof setTimeout> | undefined;
  /** The size that the server knows. */
  private told = "";
  /** The reason for which the server closes the connection, in words. */
  private words: string | null = null;
  /** Bytes of the replay that are not painted yet. Answers to queries in them were sent before. */
  private replaying = 0;
  private unpainted = 0;
  private paused = false;

  constructor(
    private readonly uuid: string,
    private readonly terminal: Screenlike,
    private readonly report: Report,
  ) {}

  private get path(): string {
    return `/api/instance/${this.uuid}/terminal/`;
  }

  /** The id of the shell, kept for this tab. */
  private get session(): string | null {
    return sessionStorage.getItem(this.path);
  }

  private set session(id: string | null) {
    if (id) sessionStorage.setItem(this.path, id);
    else sessionStorage.removeItem(this.path);
  }

  open(): void {
    this.socket = null;
    ticket().then(
      (ticket) => this.over || this.connect(ticket),
      () => this.lost(null),
    );
  }

  private connect(ticket: string): void {
    const url = new URL(this.path, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const session = this.session;
    this.told = this.size;
    url.search = `${this.told}${session ? `&session=${encodeURIComponent(session)}` : ""}${ticket}`;
    const socket = new WebSocket(url, PROTOCOL);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
      if (typeof data === "string") this.receive(JSON.parse(data) as Record<string, unknown>);
      else this.paint(new Uint8Array(data));
    };
    socket.onclose = ({ code }) => {
      const words = this.words;
      this.words = null;
      // A server that stops comes back, and its shells have ended.
      if (words && code !== GOING_AWAY) this.finish(words);
      else void this.lost(socket);
    };
  }

  private get size(): string {
    return `cols=${this.terminal.cols}&rows=${this.terminal.rows}`;
  }

  /** Tells the server the size, unless it knows it. Before the connection is open, it cannot be told. */
  resize(): void {
    if (this.told === this.size || this.socket?.readyState !== WebSocket.OPEN) return;
    this.told = this.size;
    this.control({ resize: { cols: this.terminal.cols, rows: this.terminal.rows } });
  }

  /** Sends bytes of the keyboard or of a paste. */
  type(data: Uint8Array<ArrayBuffer>): void {
    if (this.replaying > 0) return;
    for (let at = 0; at < data.length; at += LARGEST) this.send(data.subarray(at, at + LARGEST));
  }

  control(message: object): void {
    this.send(JSON.stringify(message));
  }

  private send(data: Uint8Array<ArrayBuffer> | string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
  }

  /** Closes the connection. The server keeps the shell for a while. */
  leave(): void {
    this.over = true;
    clearTimeout(this.retry);
    this.socket?.close();
  }

  /** A page cannot stop to read a WebSocket, so it asks the server to pause. */
  private paint(bytes: Uint8Array): void {
    this.unpainted += bytes.length;
    if (!this.paused && this.unpainted > HIGH) this.control({ pause: (this.paused = true) });
    this.terminal.write(bytes, () => {
      this.unpainted -= bytes.length;
      this.replaying = Math.max(0, this.replaying - bytes.length);
      if (this.paused && this.unpainted < LOW) this.control({ pause: (this.paused = false) });
    });
  }

  private receive(message: Record<string, unknown>): void {
    if (typeof message["session"] === "string") {
      const earlier = this.session;
      if (earlier && earlier !== message["session"]) this.terminal.write(NEW_SHELL);
      else this.terminal.reset();
      this.replaying = Number(message["replayed"]) || 0;
      this.paused = false;
      this.session = message["session"];
      this.failures = 0;
      this.report("open");
      // The size may have changed meanwhile.
      this.resize();
    } else if ("exit" in message) {
      const { exit } = message;
      this.finish(exit === 0 ? "The shell has ended." : `The shell has ended with ${exit ?? "a signal"}.`);
    } else if (typeof message["error"] === "string") {
      // The code of the close frame, which follows, tells whether it is the end.
      this.words = message["error"];
    }
  }

  private finish(words: string): void {
    this.over = true;
    this.session = null;
    this.report("ended", words);
    this.socket?.close();
  }

  /** A browser hides why a handshake was refused. A plain request gets the reason in words. */
  private async lost(socket: WebSocket | null): Promise<void> {
    if (this.over || socket !== this.socket) return;
    this.report("lost");
    const reason = await get(this.path).catch((error: unknown) => error);
    if (this.over || socket !== this.socket) return;
    const refused = reason instanceof Problem && reason.status >= 400 && reason.status < 500;
    if (refused && reason.status !== UPGRADE_REQUIRED) return this.finish(reason.message);
    const pause = PAUSES[Math.min(this.failures++, PAUSES.length - 1)];
    this.retry = setTimeout(() => this.open(), pause);
  }
}
