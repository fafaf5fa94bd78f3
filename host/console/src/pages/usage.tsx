// The bill by month, with its instances, volumes and snapshots.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { asProblem, get } from "../api";
import { commands } from "../commands";
import { exact, money, monthWord, perMonth, rate, shortId, size, stateWord } from "../format";
import { Alert, Command, Head } from "../parts/basics";
import type { Usage } from "../shapes";
import { find, totalRate, usage as current } from "../store";

/** The month of a time, in UTC as the bill is. */
const monthOf = (time: Date) => time.toISOString().slice(0, 7);

/** The twelve months up to now, newest first. */
function months(): string[] {
  const now = new Date();
  return Array.from({ length: 12 }, (_, n) =>
    monthOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - n, 1))),
  );
}

/** The first moment of a month, and of the month after it. */
function span(month: string): [string, string] {
  const [year, number] = month.split("-").map(Number) as [number, number];
  const at = (n: number) => new Date(Date.UTC(year, n, 1)).toISOString();
  return [at(number - 1), at(number)];
}

interface Billed {
  id: string;
  /** The page of the thing; none if it is deleted. */
  to: string | null;
  name: ComponentChildren;
  detail: string;
  state: string;
  hourly_usd: number;
  total_usd: number;
  corrections: { at: string; usd: number; reason: string }[];
}

/** Instances, volumes and snapshots alike. */
function billed({ instances, volumes, snapshots }: Usage): Billed[] {
  const ofInstances = instances.map((i) => ({
    ...i,
    id: i.uuid,
    to: find(i.uuid) ? `/instances/${i.name ?? i.uuid}` : null,
    name: i.name ?? <code title={i.uuid}>{shortId(i.uuid)}</code>,
    detail: `${i.flavor ? `${i.flavor} · ` : ""}${size(i)}`,
  }));
  const ofVolumes = volumes.map((v) => ({
    ...v,
    to: v.state === "deleted" ? null : `/volumes/${v.id}`,
    detail: `volume · ${v.size_gib} GiB`,
  }));
  const ofSnapshots = snapshots.map((s) => {
    const known = s.instance === null ? undefined : find(s.instance);
    const of = known?.name ?? instances.find((i) => i.uuid === s.instance)?.name;
    return {
      ...s,
      to: s.state === "deleted" || !known ? null : `/instances/${of}#snapshots`,
      detail: `snapshot${of ? ` of ${of}` : ""} · ${s.size_gib} GiB`,
    };
  });
  return [...ofInstances, ...ofVolumes, ...ofSnapshots];
}

export function UsagePage() {
  const all = months();
  const now = all[0] ?? "";
  const month = useSignal(now);
  const year = useSignal<Usage | null>(null);
  const chosen = useSignal<Usage | null>(null);
  const error = useSignal<string | null>(null);
  const fail = (problem: unknown) => {
    error.value = asProblem(problem).message;
  };
  useEffect(() => {
    const [from] = span(all.at(-1) ?? now);
    get<Usage>(`/api/usage/?from=${from}`).then((sums) => (year.value = sums), fail);
  }, []);
  const isNow = month.value === now;
  useEffect(() => {
    if (isNow) return;
    const [from, to] = span(month.value);
    chosen.value = null;
    get<Usage>(`/api/usage/?from=${from}&to=${to}`).then((sums) => (chosen.value = sums), fail);
  }, [month.value]);
  const shown = isNow ? current.value : chosen.value;
  const sums = new Map(year.value?.months.map((m) => [m.month, m.total_usd]));
  if (current.value) sums.set(now, current.value.total_usd);
  const most = Math.max(...sums.values(), 0.01);
  const rows = shown ? billed(shown).toSorted((a, b) => b.total_usd - a.total_usd) : [];
  return (
    <>
      <Head title="Usage" />
      <Alert words={error.value} />
      <div class="sums">
        <section class="panel">
          <h2>Now</h2>
          <p class="big">
            <b class="number">{rate(totalRate.value).replace("/h", "")}</b> per hour
          </p>
          <p class="muted">about {perMonth(totalRate.value)} for a whole month</p>
        </section>
        <section class="panel">
          <h2>{monthWord(now)} so far</h2>
          <p class="big">
            <b class="number">{current.value ? money(current.value.total_usd) : "–"}</b>
          </p>
          <p class="muted">months are in UTC</p>
        </section>
        <section class="panel months" aria-label="Months">
          <h2>The last twelve months</h2>
          <ul>
            {all.toReversed().map((m) => {
              const sum = sums.get(m) ?? 0;
              return (
                <li key={m}>
                  <button
                    type="button"
                    aria-pressed={month.value === m}
                    title={`${monthWord(m)}: ${money(sum)}`}
                    onClick={() => (month.value = m)}
                  >
                    <svg viewBox="0 0 10 40" preserveAspectRatio="none" aria-hidden="true">
                      <rect x="0" width="10" y={40 - (sum / most) * 39 - 1} height={(sum / most) * 39 + 1} />
                    </svg>
                    {monthWord(m).slice(0, 3)}
                    <span class="unseen">
                      {m.slice(0, 4)}: {money(sum)}
                    </span>
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      </div>
      <h2 class="section">
        {monthWord(month.value)}
        {shown && <span class="number">{money(shown.total_usd)}</span>}
      </h2>
      {rows.length === 0 && shown && <p class="none">Nothing was billed in {monthWord(month.value)}.</p>}
      {rows.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col" class="number wide-only">
                Now
              </th>
              <th scope="col" class="number">
                Sum
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                <th scope="row">
                  {row.to ? <a href={row.to}>{row.name}</a> : row.name}
                  <small>{row.detail}</small>
                  {row.corrections.map((c) => (
                    <small key={c.at} title={exact(c.at)}>
                      correction {money(c.usd)}: {c.reason}
                    </small>
                  ))}
                </th>
                <td>{stateWord(row.state)}</td>
                <td class="number wide-only">{row.hourly_usd ? rate(row.hourly_usd) : "–"}</td>
                <td class="number">{money(row.total_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Command line={commands.usage} note="shows the bill in a terminal." />
    </>
  );
}
