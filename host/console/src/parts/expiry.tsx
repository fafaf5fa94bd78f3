// The choice of the time after which an API key or a share ends.

import type { Signal } from "@preact/signals";
import { Select } from "./form";

const DAY = 86_400_000;
/** The days after which a key expires if its user does not choose. */
export const USUAL = 90;
/** The choices of days; none is no end. */
type Spans = [words: string, days: number | null][];
const EXPIRIES: Spans = [
  ["In 30 days", 30],
  ["In 90 days", USUAL],
  ["In a year", 365],
  ["Never", null],
];

/** The time after a number of days. */
export function inDays(days: number): string {
  return new Date(Date.now() + days * DAY).toISOString();
}

/** The field of a request. */
export function expiresAt(days: number | null): string {
  return days ? inDays(days) : "never";
}

interface Props {
  days: Signal<number | null>;
  errors: string[] | undefined;
  label?: string;
  spans?: Spans;
}

export function Expires({ days, errors, label = "Expires", spans = EXPIRIES }: Props) {
  return (
    <Select
      label={label}
      errors={errors}
      value={String(days.value ?? "")}
      options={spans.map(([words, n]) => [String(n ?? ""), words])}
      onChange={(value) => (days.value = Number(value) || null)}
    />
  );
}

/** The day of an end. */
export function Expiry({ at }: { at: string }) {
  const day = new Date(at).toLocaleDateString(undefined, { dateStyle: "medium" });
  return (
    <time dateTime={at}>{Date.parse(at) < Date.now() ? <span class="error">expired {day}</span> : day}</time>
  );
}
