// The choice of the time after which an API key expires.

import type { Signal } from "@preact/signals";
import { Field } from "./basics";

const DAY = 86_400_000;
/** The days after which a key expires if its user does not choose. */
export const USUAL = 90;
const EXPIRIES: [string, number | null][] = [
  ["In 30 days", 30],
  ["In 90 days", USUAL],
  ["In a year", 365],
  ["Never", null],
];

/** The field of a request. */
export function expiresAt(days: number | null): string {
  return days ? new Date(Date.now() + days * DAY).toISOString() : "never";
}

export function Expires({ days, errors }: { days: Signal<number | null>; errors: string[] | undefined }) {
  return (
    <Field label="Expires" errors={errors}>
      {(attributes) => (
        <select
          {...attributes}
          value={days.value ?? ""}
          onChange={(event) => (days.value = Number(event.currentTarget.value) || null)}
        >
          {EXPIRIES.map(([word, n]) => (
            <option key={word} value={n ?? ""}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** The day of an end. */
export function Expiry({ at }: { at: string }) {
  const day = new Date(at).toLocaleDateString(undefined, { dateStyle: "medium" });
  return (
    <time dateTime={at}>{Date.parse(at) < Date.now() ? <span class="error">expired {day}</span> : day}</time>
  );
}
