import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useState } from "../ui.js";
import { callApi } from "../api.js";
import { useResource } from "../resource.js";
import { navigate, pathTo } from "../router.js";

const MAX_SHOWN = 50;
const MAX_BUCKETS = 100;
const sources = signal(new Map());
const open = signal(false);

/** Opens the palette. */
export function openPalette() {
  open.value = true;
}

/** Adds commands while a component is shown: [{ label, hint, href | run }]. */
export function useCommands(name, commands, inputs) {
  useEffect(() => {
    sources.value = new Map(sources.peek()).set(name, commands());
    return () => {
      const rest = new Map(sources.peek());
      rest.delete(name);
      sources.value = rest;
    };
  }, inputs);
}

/** The palette of commands, opened by Ctrl-K; once in the shell. */
export function Palette() {
  const shown = useSignal(open);
  useLayoutEffect(() => {
    const onKeyDown = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open.value = !open.peek();
      }
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
  return shown && html`<${PaletteDialog} />`;
}

function PaletteDialog() {
  const all = useSignal(sources);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const element = useRef(null);
  // before the next key arrives: letters typed right after Ctrl-K belong to the palette
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const { data: buckets = [] } = useResource(loadBuckets, []);
  const { data: people = [] } = useResource(loadPeople, []);
  const found = useMemo(() => findCommands([...[...all.values()].flat(), ...people, ...buckets], text), [all, people, buckets, text]);
  const close = () => {
    open.value = false;
  };
  const choose = (command) => {
    close();
    if (command.href) navigate(command.href);
    else command.run();
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((at + step + found.length) % Math.max(found.length, 1));
    else if (event.key === "Enter" && found[at]) choose(found[at]);
    else return;
    event.preventDefault();
  };
  const onInput = (event) => {
    setText(event.target.value);
    setAt(0);
  };
  return html`
    <dialog ref=${element} class="palette" aria-label="Go to or do" onCancel=${close} onClick=${(event) => event.target === element.current && close()}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Go to or do"
        aria-activedescendant=${found[at] ? `palette-${at}` : undefined} placeholder="Go to a page, a bucket, or do something"
        autofocus value=${text} onInput=${onInput} onKeyDown=${onKeyDown} />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        ${found.map((command, index) => html`
          <li id="palette-${index}" key=${command.href ?? command.label} role="option" aria-selected=${String(index === at)} onClick=${() => choose(command)}>
            <span class="grow cut">${command.label}</span><span class="quiet small">${command.hint}</span>
          </li>`)}
      </ul>
      ${!found.length && html`<p class="quiet" role="status">Nothing has a name like this.</p>`}
    </dialog>`;
}

/** The first buckets, from wherever one is; none without the right to list them. */
async function loadBuckets(signal) {
  const { buckets } = await callApi("GET", "buckets", { query: { limit: MAX_BUCKETS }, signal });
  return buckets.map(({ name }) => ({ label: name, hint: "bucket", href: pathTo(["buckets", name, "objects"]) }));
}

/** The pages of the room People, which depend on rights that only IAM knows. */
async function loadPeople(signal) {
  const { loadCommands } = await import("../rooms/people/pages.js");
  return loadCommands(signal);
}

function findCommands(commands, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (command) => words.every((word) => `${command.label} ${command.hint ?? ""}`.toLowerCase().includes(word));
  const isFirst = ({ href }, index) => !href || commands.findIndex((one) => one.href === href) === index;
  return commands.filter((command, index) => matches(command) && isFirst(command, index)).slice(0, MAX_SHOWN);
}
