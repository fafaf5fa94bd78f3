// The way in to a page by name: the host of the page sends the browser here, and gets it back with a ticket.

import { useEffect, useState } from "preact/hooks";
import { asProblem, send } from "../api";

/** Asks for the address that lets this browser in, and opens it. */
export function EnterPage() {
  const [refusal, setRefusal] = useState<string | null>(null);
  useEffect(() => {
    const query = new URLSearchParams(location.search);
    const [host, state] = [query.get("host") ?? "", query.get("state") ?? ""];
    const enter = async () => {
      const body = { host, state, to: query.get("to") };
      const { url } = await send<{ url: string }>("POST", "/auth/page/", body);
      location.replace(url);
    };
    enter().catch((error: unknown) => {
      const problem = asProblem(error);
      setRefusal(
        problem.status === 404 ? `There is no page ${host}, or you may not see it.` : problem.message,
      );
    });
  }, []);
  if (!refusal) return <p role="status">Opening the page…</p>;
  return (
    <main class="lone">
      <h1>The page cannot be opened</h1>
      <p role="alert">{refusal}</p>
      <p>
        <a href="/instances">Show your instances</a>
      </p>
    </main>
  );
}
