import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { start } from "./store";

const place = document.getElementById("app");
if (place) render(<App />, place);
void start();
