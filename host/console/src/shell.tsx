// The frame of every page: the rail, the bar about the connection, the skip link.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import icon from "./icon.svg";
import { showHelp } from "./keyboard";
import { rate } from "./format";
import { path } from "./router";
import { instances, loaded, online, session, totalRate } from "./store";

const PLACES: [to: string, word: string, under: RegExp][] = [
  ["/instances", "Instances", /^\/($|instances)/],
  ["/volumes", "Volumes", /^\/volumes/],
  ["/usage", "Usage", /^\/usage/],
  ["/events", "Events", /^\/events/],
  ["/audit", "Audit", /^\/audit/],
  ["/settings/keys", "Settings", /^\/settings/],
];
/** A shorter interruption is not worth a word. */
const QUIET_MS = 1000;

export function Shell({ children }: { children: ComponentChildren }) {
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  // Focus moves with the page, so that the keyboard and screen readers begin there. An effect after the
  // next frame would take it from the filter that the user went to meanwhile.
  useLayoutEffect(() => {
    if (!first.current) main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    first.current = false;
  }, [path.value]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <nav class="rail" aria-label="Console">
        <a class="brand" href="/instances">
          <img src={icon} alt="" width="20" height="20" />
          Wharf
        </a>
        <ul>
          {PLACES.map(([to, word, under]) => (
            <li key={to}>
              <a href={to} aria-current={under.test(path.value) ? "page" : undefined}>
                {word}
                {to === "/instances" && loaded.value && (
                  <span class="count">{instances.value.length}</span>
                )}
              </a>
            </li>
          ))}
        </ul>
        <div class="who">
          <span title={session.value?.email}>{session.value?.email}</span>
          <span class="number">{rate(totalRate.value)} now</span>
          <button type="button" class="link" onClick={showHelp}>
            Keyboard <kbd>?</kbd>
          </button>
        </div>
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        <Connection />
        {children}
      </main>
      <div id="announcer" class="unseen" role="status" aria-live="polite" />
    </div>
  );
}

function Connection() {
  const late = useSignal(false);
  const up = online.value;
  useEffect(() => {
    late.value = false;
    if (up) return;
    const timer = setTimeout(() => (late.value = true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [up]);
  return !up && late.value ? (
    <p class="bar" role="status">
      The connection is lost. This page shows the last known state and connects again by itself.
    </p>
  ) : null;
}

const SETTINGS: [string, string][] = [
  ["/settings/keys", "API Key"],
  ["/settings/ssh-keys", "SSH keys"],
  ["/settings/buckets", "Buckets"],
  ["/settings/webhooks", "Webhooks"],
  ["/settings/account", "Account"],
];

/** The pages of the settings, with their tabs. */
export function Settings({ children }: { children: ComponentChildren }) {
  return (
    <>
      <nav class="tabs" aria-label="Settings">
        {SETTINGS.map(([to, word]) => (
          <a key={to} href={to} aria-current={path.value.startsWith(to) ? "page" : undefined}>
            {word}
          </a>
        ))}
      </nav>
      {children}
    </>
  );
}
