import "./style.css";
import { render } from "preact";
import { asProblem } from "./api";
import { App } from "./app";
import { backFromProvider } from "./pages/sign-in";
import { fault, start } from "./store";

// A promise that no part of the page has caught must not fail in silence.
addEventListener("unhandledrejection", ({ reason }) => {
  if (!(reason instanceof Error && reason.name === "AbortError")) fault.value = asProblem(reason).message;
});

const place = document.getElementById("app");
if (place) render(<App />, place);
backFromProvider();
void start();
