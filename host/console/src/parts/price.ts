// The price of a request, while it changes.

import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Problem, send } from "../api";
import type { CreateRequest, Estimate } from "../shapes";

/** The price is asked for this long after the last keystroke. */
const PRICE_MS = 150;

/** Asks for the price of a request whenever it changes, and drops answers that come late. */
export function usePrice(
  request: CreateRequest,
  estimate: Signal<Estimate | null>,
  refused: Signal<Problem | null>,
): void {
  const text = JSON.stringify(request);
  useEffect(() => {
    const ended = new AbortController();
    const ask = async () => {
      try {
        estimate.value = await send<Estimate>("POST", "/api/estimate/", request, { signal: ended.signal });
        refused.value = null;
      } catch (error) {
        if (ended.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        estimate.value = null;
        refused.value = error.status === 400 ? error : null;
      }
    };
    const timer = setTimeout(ask, PRICE_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [text]);
}
