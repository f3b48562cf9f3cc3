import { loadStyle } from "../../components/style.js";

/** Loads the style of the simulator, wherever it is shown. */
export function loadSimulatorStyle() {
  return loadStyle(import.meta.url, "simulator.css");
}
