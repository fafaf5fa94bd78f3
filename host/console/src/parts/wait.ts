// The time that instances lately took to become ready.

import { computed } from "@preact/signals";
import { find, recent } from "../store";

/** Times from creation to ready, in milliseconds, by flavor. The latest is first. */
const waits = computed(() => {
  const ready = new Map<string, number>();
  const found: { flavor: string | undefined; ms: number }[] = [];
  for (const { type, instance, at } of recent.value) {
    if (!instance) continue;
    const then = ready.get(instance);
    if (type === "ready") ready.set(instance, Date.parse(at));
    else if (type === "created" && then) found.push({ flavor: find(instance)?.flavor, ms: then - Date.parse(at) });
  }
  return found;
});

/** The usual time until an instance is ready, such as "in about 2 s"; none without an example. */
export function usualWait(flavor: string): string | null {
  const alike = waits.value.filter((wait) => wait.flavor === flavor);
  const times = (alike.length ? alike : waits.value).map(({ ms }) => ms).sort((a, b) => a - b);
  const median = times[Math.floor(times.length / 2)];
  if (median === undefined) return null;
  const seconds = Math.max(1, Math.round(median / 1000));
  return seconds < 90 ? `in about ${seconds} s` : `in about ${Math.round(seconds / 60)} minutes`;
}
