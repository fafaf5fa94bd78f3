import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { backFromProvider } from "./pages/sign-in";
import { start } from "./store";

const place = document.getElementById("app");
if (place) render(<App />, place);
backFromProvider();
void start();
