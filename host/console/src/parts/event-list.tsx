// Events in plain words.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { pages } from "../api";
import { clock, exact, shortId } from "../format";
import type { Happening } from "../shapes";
import { end, find, now, onEvent } from "../store";

/** The types of events after which there is no page of the thing. */
const GONE = ["deleted", "volume-deleted"];

/** The page of the thing of an event; none if it is gone. */
function pageOf({ instance, volume, snapshot, type }: Happening): string | null {
  if (GONE.includes(type)) return null;
  if (!instance) return volume ? `/volumes/${volume}` : null;
  const tab = snapshot ? "#snapshots" : type.startsWith("backup-") ? "#backups" : "";
  return `/instances/${find(instance)?.name ?? instance}${tab}`;
}

/** The name of the thing of an event. That of a snapshot is unique for its instance alone. */
function nameOf({ instance, snapshot, name }: Happening): string | null {
  const of = snapshot && instance ? find(instance)?.name : undefined;
  return of ? `${of}/${name}` : name;
}

const ACTORS: Record<string, string> = {
  key: "API key",
  session: "console",
  operator: "operator",
  system: "Wharf",
  node: "node",
};

/** The party that caused an event. */
export function actor(event: Happening): string {
  if (!event.actor) return "";
  const word = ACTORS[event.actor.kind] ?? event.actor.kind;
  return event.actor.kind === "key" && event.actor.id ? `${word} ${shortId(event.actor.id)}` : word;
}

/** The events of an instance, newest first, and new ones as they arrive. */
export function useInstanceEvents(uuid: string): Signal<Happening[]> {
  const events = useSignal<Happening[]>([]);
  const known = end.value !== null;
  useEffect(() => {
    const add = (more: Happening[]) => {
      const all = new Map(events.value.map((event) => [event.id, event]));
      for (const event of more) if (event.type !== "reset") all.set(event.id, event);
      events.value = [...all.values()].sort((a, b) => b.id - a.id);
    };
    const read = async () => {
      const path = `/api/event/?instance=${uuid}&limit=1000`;
      try {
        for await (const page of pages<Happening>(path)) add(page);
      } catch {
        // The stream still brings new events.
      }
    };
    void read();
    return onEvent((event) => event.instance === uuid && add([event]));
  }, [uuid, known]);
  return events;
}

/** The event, of those with the newest first, that explains a state. Later events do not explain an error. */
export function reasonOf(state: string, events: Happening[]): Happening | undefined {
  return state === "error" ? events.find((event) => ["failed", "lost"].includes(event.type)) : events[0];
}

export function EventList({ events, named = true }: { events: Happening[]; named?: boolean }) {
  if (events.length === 0) return <p class="none">Nothing has happened yet.</p>;
  return (
    <ol class={named ? "events panel" : "events panel unnamed"}>
      {events.map((event) => (
        <li key={event.id}>
          <time class="number" dateTime={event.at} title={exact(event.at)}>
            {clock(event.at, now.value)}
          </time>
          {named && (event.name && pageOf(event) ? (
            <a href={pageOf(event) ?? ""}>{nameOf(event)}</a>
          ) : (
            <span>{nameOf(event)}</span>
          ))}
          <span class="message">
            {!named && event.snapshot && `${event.name}: `}
            {event.message}
          </span>
          <span class="muted actor">{actor(event)}</span>
        </li>
      ))}
    </ol>
  );
}
