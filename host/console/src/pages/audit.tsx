// The record of the user's changes.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, nextPage, request } from "../api";
import { commands } from "../commands";
import { clock, exact, shortId } from "../format";
import { Alert, Command, Head } from "../parts/basics";
import type { AuditRecord } from "../shapes";
import { instances, now, onChange } from "../store";

const FIRST = "/api/audit/?order=newest&limit=100";

export function Audit() {
  const records = useSignal<AuditRecord[]>([]);
  const next = useSignal<string | null>(null);
  const error = useSignal<string | null>(null);
  const read = async (path: string) => {
    try {
      const { value, headers } = await request("GET", path);
      const known = new Set(records.value.map((record) => record.id));
      const page = (value as AuditRecord[]).filter((record) => !known.has(record.id));
      records.value = [...records.value, ...page].sort((a, b) => b.id - a.id);
      // A later look at the first page finds new records alone.
      if (known.size === 0 || path !== FIRST) next.value = nextPage(headers);
    } catch (problem) {
      error.value = asProblem(problem).message;
    }
  };
  useEffect(() => {
    void read(FIRST);
    return onChange(["audit"], () => void read(FIRST));
  }, []);
  const names = new Map(instances.value.map((i) => [i.uuid, i.name]));
  const about = (record: AuditRecord) => {
    const name = record.instance && names.get(record.instance);
    if (name) return <a href={`/instances/${name}`}>{name}</a>;
    const id = record.instance ?? record.subject;
    return id ? <code title={id}>{shortId(id)}</code> : "–";
  };
  return (
    <>
      <Head title="Audit log" />
      <p class="lead">Each change of yours has a record; the latest is first.</p>
      <Alert words={error.value} />
      {records.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Operation</th>
              <th scope="col">About</th>
              <th scope="col">Result</th>
              <th scope="col">By</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {records.value.map((record) => (
              <tr key={record.id}>
                <td class="time">
                  <time dateTime={record.time} title={exact(record.time)}>
                    {clock(record.time, now.value)}
                  </time>
                </td>
                <th scope="row">
                  <code>{record.operation}</code>
                </th>
                <td>{about(record)}</td>
                <td>{record.result}</td>
                <td>
                  <code>{record.actor}</code>
                </td>
                <td title={record.request_id ? `request ${record.request_id}` : undefined}>
                  <code>{record.peer ?? "–"}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {records.value.length === 0 && !next.value && <p class="none">Nothing was changed yet.</p>}
      {next.value && records.value.length > 0 && (
        <p>
          <button type="button" onClick={() => next.value && void read(next.value)}>
            Show more
          </button>
        </p>
      )}
      <Command line={commands.audit} note="lists the records in a terminal." />
    </>
  );
}
