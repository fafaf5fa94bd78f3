import { defineConfig } from "vite";

// `npm run dev` shows the console of a server that runs elsewhere. WHARF_KEY replaces signing in.
const server = process.env.WHARF_URL ?? "http://127.0.0.1:8080";
const key = process.env.WHARF_KEY;
const proxy = {
  target: server,
  changeOrigin: true,
  ws: true,
  ...(key ? { headers: { authorization: `Bearer ${key}` } } : {}),
};

export default defineConfig({
  build: {
    target: "es2022",
    // The policy of the page allows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": proxy, "/auth": proxy } },
});
