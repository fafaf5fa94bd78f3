// The library for charts, which loads with the first chart.

import "uplot/dist/uPlot.min.css";
export { default } from "uplot";
