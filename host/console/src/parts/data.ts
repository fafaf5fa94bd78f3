// Lists that a page reads when it opens.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, get } from "../api";
import type { List } from "../live/stream";
import { onChange } from "../store";

export interface Data<T> {
  value: T | null;
  error: string | null;
  reload: () => Promise<void>;
}

/** Reads a path when the page opens, again on `reload`, and again when `list` has changed. */
export function useData<T>(path: string, list?: List): Data<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<string | null>(null);
  const reload = async () => {
    try {
      value.value = await get<T>(path);
      error.value = null;
    } catch (problem) {
      error.value = asProblem(problem).message;
    }
  };
  useEffect(() => {
    void reload();
    return list && onChange(list, () => void reload());
  }, [path, list]);
  return { value: value.value, error: error.value, reload };
}
