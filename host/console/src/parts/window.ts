// The rows of a long list that are on the screen, so that a list of any length is quick.

import { useSignal } from "@preact/signals";
import { type RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";

/** Rows beyond each edge of the screen. */
const MARGIN = 6;

export interface Rows {
  from: number;
  to: number;
  /** Pixels above and below the rendered rows. */
  above: number;
  below: number;
}

/** The range of rows to render, for `count` rows of equal height in a body. */
export function useWindow(body: RefObject<HTMLElement | null>, count: number, height: number): Rows {
  const range = useSignal({ from: 0, to: 40 });
  const measure = () => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    const from = Math.max(0, Math.floor(-top / height) - MARGIN);
    const to = Math.ceil((innerHeight - top) / height) + MARGIN;
    // Even steps, so that a scroll by a few pixels renders nothing.
    const even = { from: from - (from % 4), to: to + 4 - (to % 4) };
    if (even.from !== range.peek().from || even.to !== range.peek().to) range.value = even;
  };
  useLayoutEffect(measure, [count, height]);
  useEffect(() => {
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [height]);
  const from = Math.min(range.value.from, Math.max(0, count - 1));
  const to = Math.min(range.value.to, count);
  return { from, to, above: from * height, below: Math.max(0, count - to) * height };
}

/** Whether a media query matches, live. */
export function useMedia(query: string): boolean {
  const list = matchMedia(query);
  const matches = useSignal(list.matches);
  useEffect(() => {
    const change = () => (matches.value = list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, [query]);
  return matches.value;
}
