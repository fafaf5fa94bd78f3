// Samples of instances' usage, shared by the list's lines and the charts.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api";
import type { Stats } from "../shapes";

/** A sample and its time in milliseconds. */
export interface Sample extends Stats {
  at: number;
}

/** Samples kept per instance: ten minutes at one per second. */
const KEPT = 600;
/** Requests for samples that are on their way at a time. */
const AT_ONCE = 4;

const histories = new Map<string, ReturnType<typeof signal<Sample[]>>>();
let running = 0;

/** The samples of an instance since the console was opened. */
export function history(uuid: string) {
  let samples = histories.get(uuid);
  if (!samples) histories.set(uuid, (samples = signal<Sample[]>([])));
  return samples;
}

/** Reads the usage of an instance again and again while the page is visible. */
export function useSamples(uuid: string, every: number, active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const sample = async () => {
      if (document.visibilityState === "visible" && running < AT_ONCE) {
        running++;
        try {
          const stats = await get<Stats>(`/api/instance/${uuid}/stats/`, { signal: ended.signal });
          const samples = history(uuid);
          samples.value = [...(samples.value ?? []), { ...stats, at: Date.now() }].slice(-KEPT);
        } catch {
          // The instance may just have stopped, or its node may be out of reach: a gap shows it.
        } finally {
          running--;
        }
      }
      if (!ended.signal.aborted) timer = setTimeout(sample, every);
    };
    timer = setTimeout(sample, Math.random() * Math.min(every, 300));
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [uuid, every, active]);
}

const WIDTH = 84;
const HEIGHT = 22;
const SHOWN = 24;

/** A small line of the CPU usage. */
export function Spark({ uuid, vcpus, active }: { uuid: string; vcpus: number; active: boolean }) {
  useSamples(uuid, 4000, active);
  const samples = (history(uuid).value ?? []).slice(-SHOWN);
  const last = samples.at(-1);
  if (!active || !last) return <span class="muted">–</span>;
  const top = vcpus * 100;
  const points = samples.map((sample, n) => {
    const x = WIDTH - (samples.length - 1 - n) * (WIDTH / (SHOWN - 1));
    const y = HEIGHT - 1 - (Math.min(sample.cpu_percent, top) / top) * (HEIGHT - 2);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  if (points.length === 1) points.unshift(`${WIDTH - 4},${points[0]?.split(",")[1]}`);
  return (
    <svg
      class="spark"
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`CPU ${Math.round(last.cpu_percent)} % of ${top} %`}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}
