// Server-sent events of the admin API: connects again by itself, and rests while the tab is hidden.
import { callApi } from "./api.js";
import { useEffect, useRef, useState } from "./ui.js";

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;

/**
 * Listens to `/api/v1/live/PATH` while the component is shown; `path` null: not. `handlers` has a function by event name,
 * called with the parsed JSON. Returns "connecting", "open", "waiting" (it is tried again) or "hidden".
 */
export function useLive(path, handlers) {
  const [state, setState] = useState("connecting");
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    if (path === null) return undefined;
    const stream = new LiveStream(path, latest, setState);
    return () => stream.close();
  }, [path]);
  return state;
}

class LiveStream {
  constructor(path, handlers, setState) {
    this.path = path;
    this.handlers = handlers;
    this.setState = setState;
    this.delay = FIRST_DELAY_MS;
    this.onVisibility = () => (document.hidden ? this.rest() : this.connect());
    document.addEventListener("visibilitychange", this.onVisibility);
    this.onVisibility();
  }

  connect() {
    this.stop();
    this.source = new EventSource(`/api/v1/live/${this.path}`);
    this.source.onopen = () => {
      this.delay = FIRST_DELAY_MS;
      this.setState("open");
    };
    this.source.onerror = () => this.retry();
    for (const name of Object.keys(this.handlers.current)) {
      this.source.addEventListener(name, (event) => this.handlers.current[name](JSON.parse(event.data)));
    }
  }

  retry() {
    this.stop();
    this.setState("waiting");
    callApi("GET", "session").catch(() => {}); // a stream does not say why it fails: when the session ended, this does
    this.timer = setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(this.delay * 2, MAX_DELAY_MS);
  }

  rest() {
    this.stop();
    this.setState("hidden");
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
  }

  close() {
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.stop();
  }
}
