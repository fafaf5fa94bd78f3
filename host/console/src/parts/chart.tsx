// A chart of one measure over time.

import { useEffect, useRef } from "preact/hooks";
import type UPlot from "uplot";
import { history } from "./spark";
import type { Sample } from "./spark";

interface Props {
  uuid: string;
  label: string;
  value: (sample: Sample) => number;
  /** The top of the scale. */
  top: number;
  unit: string;
}

const HEIGHT = 150;
/** The shortest span shown, in seconds. */
const SPAN = 60;
/** A longer pause between samples, in milliseconds, shows as a gap. */
const GAP = 8000;

const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Resolves a custom property, which may be a `light-dark()`, to a color for the canvas. */
function resolve(element: HTMLElement, name: string): string {
  element.style.color = color(name) ? `var(${name})` : "";
  const resolved = getComputedStyle(element).color;
  element.style.color = "";
  return resolved;
}

function data(samples: Sample[], value: (sample: Sample) => number): [number[], (number | null)[]] {
  const times: number[] = [];
  const values: (number | null)[] = [];
  for (const [n, sample] of samples.entries()) {
    const before = samples[n - 1];
    if (before && sample.at - before.at > GAP) {
      times.push(before.at / 1000 + 1);
      values.push(null);
    }
    times.push(sample.at / 1000);
    values.push(value(sample));
  }
  return [times, values];
}

export function Chart({ uuid, label, value, top, unit }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const samples = history(uuid).value ?? [];
  const plot = useRef<UPlot | null>(null);
  const latest = useRef(samples);
  latest.current = samples;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let ended = false;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = async () => {
      const { default: Plot } = await import("./uplot");
      if (ended) return;
      plot.current?.destroy();
      const line = resolve(element, "--accent");
      const grid = resolve(element, "--line");
      const muted = resolve(element, "--muted");
      const axis = { stroke: muted, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
      plot.current = new Plot(
        {
          width: element.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { y: false, drag: { x: false, y: false } },
          padding: [8, 4, 0, 0],
          scales: {
            x: {
              range: (_, low, high) => {
                // For a single sample, the library offers a whole day.
                const end = Math.min(high ?? Infinity, Date.now() / 1000);
                return [Math.min(low ?? end, end - SPAN), end];
              },
            },
            y: { range: () => [0, top] },
          },
          axes: [
            { ...axis, grid: { show: false }, size: 24, space: 90,
              values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB")) },
            { ...axis, size: 44, splits: () => [0, top / 2, top],
              values: (_, ticks) => ticks.map((t) => String(Math.round(t * 10) / 10)) },
          ],
          series: [{}, { stroke: line, width: 1.5, fill: line.replace(/rgb\((.*)\)/, "rgba($1, 0.14)"), points: { show: false } }],
        },
        data(latest.current, value),
        element,
      );
    };
    void draw();
    const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    size.observe(element);
    dark.addEventListener("change", draw);
    return () => {
      ended = true;
      size.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [uuid, top]);
  useEffect(() => plot.current?.setData(data(samples, value)), [samples]);
  const last = samples.at(-1);
  const shown = last ? round(value(last)) : null;
  return (
    <section class="panel chart">
      <h2>
        {label}
        <span class="number">
          {shown ?? "–"}{" "}
          <span class="muted">
            of {round(top)} {unit}
          </span>
        </span>
      </h2>
      <div
        ref={place}
        class="plot"
        role="img"
        aria-label={shown ? `${label}: ${shown} of ${round(top)} ${unit}` : `${label}: no samples yet`}
      />
    </section>
  );
}

const round = (n: number) => (n >= 100 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(n < 10 ? 2 : 1));
