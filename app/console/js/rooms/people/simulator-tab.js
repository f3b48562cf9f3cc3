import { html } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { useResource } from "../../resource.js";

/** The policy simulator, loaded when it is first opened. */
export function SimulatorTab(shared) {
  const { data: Shown, error } = useResource(async () => (await import("../simulator/simulator.js")).default, []);
  return Shown ? html`<${Shown} ...${shared} />` : html`<${ErrorNote} error=${error} />`;
}
