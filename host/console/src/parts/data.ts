// Lists that a page reads when it opens.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, get } from "../api";
import type { List } from "../live/stream";
import { onChange, onEvent } from "../store";

/** Events arrive in bursts; data is read once for each. */
const GATHER_MS = 200;

export interface Data<T> {
  value: T | null;
  error: string | null;
  reload: () => Promise<void>;
}

/** Reads a path when the page opens, again on `reload`, and again when one of `lists` has changed. */
export function useData<T>(path: string, ...lists: List[]): Data<T> {
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
    return onChange(lists, () => void reload());
  }, [path, ...lists]);
  return { value: value.value, error: error.value, reload };
}

/** Reads a path when the page opens, and again after events. */
export function useLive<T>(path: string): Data<T> {
  const data = useData<T>(path);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = () => {
      timer = undefined;
      void data.reload();
    };
    const stop = onEvent(() => (timer ??= setTimeout(read, GATHER_MS)));
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [path]);
  return data;
}
