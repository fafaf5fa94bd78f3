// Builds the console again, compares the result with the committed one, and weighs it.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const here = import.meta.dirname;
/** The most bytes of a first visit, compressed: everything but the terminal. */
const FIRST_LOAD = 120 * 1024;
const run = (cwd, program, ...args) =>
  execFileSync(process.execPath, [join(here, "node_modules/.bin", program), ...args], {
    cwd,
    stdio: ["ignore", "ignore", "inherit"],
  });

/** All files of a directory, by their path in it. */
function files(directory) {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const plain = entries.filter((entry) => entry.isFile());
  return new Map(
    plain.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [relative(directory, path), readFileSync(path)];
    }),
  );
}

function compare(name, committed, built) {
  const [old, now] = [files(committed), files(built)];
  const paths = new Set([...old.keys(), ...now.keys()]);
  return [...paths]
    .filter((path) => !old.get(path)?.equals(now.get(path) ?? Buffer.alloc(0)))
    .map((path) => `${name}/${path}`);
}

function fail(words) {
  process.stderr.write(`${words}\n`);
  process.exitCode = 1;
}

if (readFileSync(join(here, "package-lock.json"), "utf8").includes('"resolved"')) {
  fail("package-lock.json names a registry. Run `npm install` here, where .npmrc leaves it out.");
}
const loaded = [...files(join(here, "dist"))].filter(([path]) => !path.includes("xterm"));
const weight = loaded.reduce((sum, [, content]) => sum + gzipSync(content).length, 0);
process.stdout.write(`first load without the terminal: ${weight} bytes of ${FIRST_LOAD}\n`);
if (weight > FIRST_LOAD) fail("The first load is too large.");
run(here, "tsc");
// Another directory shows that the result does not depend on it.
const copy = mkdtempSync(join(tmpdir(), "wharf-console-"));
try {
  const skipped = ["node_modules", "dist"].map((name) => join(here, name));
  const console = join(copy, "host/console");
  cpSync(here, console, { recursive: true, filter: (path) => !skipped.includes(path) });
  cpSync(join(here, "../../schemas/openapi.yaml"), join(copy, "schemas/openapi.yaml"));
  cpSync(join(here, "node_modules"), join(console, "node_modules"), { recursive: true, verbatimSymlinks: true });
  run(console, "openapi-ts");
  const types = compare("src/generated", join(here, "src/generated"), join(console, "src/generated"));
  run(console, "vite", "build");
  const dist = compare("dist", join(here, "dist"), join(console, "dist"));
  const changed = [...types, ...dist];
  if (changed.length > 0) {
    fail(`Not as built: ${changed.join(", ")}.\nRun \`npm run types && npm run build\` and commit.`);
  }
} finally {
  rmSync(copy, { recursive: true });
}
