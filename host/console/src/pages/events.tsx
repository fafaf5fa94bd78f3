// All events of the user, newest first, live.

import { useSignal } from "@preact/signals";
import { asProblem, get } from "../api";
import { commands } from "../commands";
import { Alert, Command, Head } from "../parts/basics";
import { actor, EventList } from "../parts/event-list";
import type { Happening } from "../shapes";
import { end, recent } from "../store";

const PAGE = 200;
const SHOWN = 200;

export function Events() {
  const older = useSignal<Happening[]>([]);
  const shown = useSignal(SHOWN);
  const error = useSignal<string | null>(null);
  const text = useSignal("");
  const all = [...recent.value, ...older.value];
  const first = all.at(-1)?.id ?? 1;
  const more = async () => {
    shown.value += PAGE;
    if (all.length >= shown.value || first <= 1) return;
    try {
      const after = Math.max(0, first - 1 - PAGE);
      const page = await get<Happening[]>(`/api/event/?after=${after}&limit=${Math.min(PAGE, first - 1)}`);
      const reset = page[0]?.type === "reset";
      older.value = [...older.value, ...page.filter((e) => e.id < first && e.type !== "reset").reverse()];
      if (reset && page.length < 2) error.value = "Older events are no longer kept.";
    } catch (problem) {
      error.value = asProblem(problem).message;
    }
  };
  const parts = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = all.filter((event) => {
    const words = `${event.name} ${event.type} ${event.message} ${actor(event)}`.toLowerCase();
    return parts.every((part) => words.includes(part));
  });
  return (
    <>
      <Head title="Events">
        <input
          type="search"
          data-filter
          class="filter"
          placeholder="Filter   /"
          aria-label="Filter events"
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </Head>
      <Alert words={error.value} />
      {end.value !== null && <EventList events={matching.slice(0, shown.value)} />}
      {(matching.length > shown.value || (first > 1 && all.length > 0)) && !error.value && (
        <p>
          <button type="button" onClick={() => void more()}>
            Show older events
          </button>
        </p>
      )}
      <Command line={commands.events} note="follows the events in a terminal." />
    </>
  );
}
