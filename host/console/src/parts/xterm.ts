// The terminal, which loads with the first one.

import "@xterm/xterm/css/xterm.css";
export { FitAddon } from "@xterm/addon-fit";
export { Terminal } from "@xterm/xterm";
