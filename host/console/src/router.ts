// The address of the page as a signal, and links that change it without loading the page again.

import { signal } from "@preact/signals";

export const path = signal(location.pathname);
/** The page that a sign-in leads back to. */
export const returnTo = signal<string | null>(null);

/** Opens a page of the console. */
export function go(to: string, replace = false): void {
  if (to !== location.pathname + location.search + location.hash) {
    history[replace ? "replaceState" : "pushState"](null, "", to);
  }
  path.value = location.pathname;
  scrollTo(0, 0);
}

addEventListener("popstate", () => (path.value = location.pathname));

// A plain click on a link within the console opens the page in place.
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link?.href || link.target || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || /^\/(api|auth)\//.test(url.pathname)) return;
  // The page of a terminal has a policy of its own, so it is loaded.
  if (url.pathname.endsWith("/terminal")) return;
  if (url.hash && url.pathname === location.pathname) return;
  event.preventDefault();
  go(url.pathname + url.search);
});
