import { defineConfig } from "@hey-api/openapi-ts";

export default defineConfig({
  input: "../../schemas/generated/openapi.json",
  output: { path: "src/generated" },
  plugins: [{ name: "@hey-api/typescript", enums: false }],
});
