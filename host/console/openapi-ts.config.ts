import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: "../../schemas/openapi.yaml",
  output: { path: "src/generated" },
  // The console has its requests in `api.ts`, and takes the schemas alone.
  parser: { patch: { input: (document) => void (document.paths = {}) } },
  plugins: [{ name: "@hey-api/typescript", enums: false }],
});
