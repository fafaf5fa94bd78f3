// A list of things that can be removed.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Alert } from "./basics";
import type { Data } from "./data";
import { Confirm } from "./remove";

export interface Removal<T> {
  verb: string;
  /** The words for the thing, after the verb. */
  name: (item: T) => string;
  work: (item: T) => Promise<unknown>;
  command?: (item: T) => string;
  /** What is lost. */
  words: (item: T) => ComponentChildren;
  /** Whether a thing has the button. */
  of?: (item: T) => boolean;
  /** Whether data is lost, so that the name is typed. */
  typed?: boolean;
}

interface Props<T> {
  data: Pick<Data<T[]>, "value" | "error" | "reload">;
  /** The heads of the columns. The first cell of a row is its head. */
  columns: string[];
  cells: (item: T) => ComponentChildren[];
  /** The words in place of an empty list. */
  empty: string;
  removal: Removal<T>;
  /** The buttons of a row before that of the removal. */
  buttons?: (item: T) => ComponentChildren;
}

/** A table with a button in each row, and the question before a removal. */
export function Listing<T extends { id: string }>({ data, columns, cells, empty, removal, buttons }: Props<T>) {
  const removing = useSignal<T | null>(null);
  const { verb, name, work, command, words, of, typed } = removal;
  const going = removing.value;
  return (
    <>
      <Alert words={data.error} />
      {data.value && data.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
              <th scope="col">
                <span class="unseen">{buttons ? "Actions" : "Action"}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.value.map((item) => (
              <tr key={item.id}>
                {cells(item).map((cell, n) =>
                  n === 0 ? (
                    <th key={n} scope="row">
                      {cell}
                    </th>
                  ) : (
                    <td key={n}>{cell}</td>
                  ),
                )}
                <td class="number">
                  {buttons?.(item)}{" "}
                  {(of?.(item) ?? true) && (
                    <button
                      type="button"
                      class="small"
                      aria-label={`${verb} ${name(item)}`}
                      onClick={() => (removing.value = item)}
                    >
                      {verb}
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {data.value?.length === 0 && <p class="none">{empty}</p>}
      {going && (
        <Confirm
          title={`${verb} ${name(going)}`}
          verb={typed ? `${verb} ${name(going)}` : verb}
          {...(typed && { typed: name(going) })}
          command={command?.(going)}
          onClose={() => (removing.value = null)}
          work={async () => {
            await work(going);
            await data.reload();
          }}
        >
          {words(going)}
        </Confirm>
      )}
    </>
  );
}
