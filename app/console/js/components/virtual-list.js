import { classes, html, useEffect, useId, useRef, useState } from "../ui.js";

const OVERSCAN = 8;
const MAX_HEIGHT_PX = 8_000_000;
/** Lines that are used again for others, so that scrolling makes no elements. */
const POOL = 256;

/**
 * A list of any length of which only the visible lines are in the document. `renderLine(index)` returns one line of
 * `lineHeight` pixels; `onNearEnd()` is called when the end comes near. `label` names it. Lines are role="row" of a grid.
 * `active`: the index of the line that the keyboard is at; `isSelected(index)`; `onLineClick(index, event)`; `listRef`.
 */
export function VirtualList({ count, lineHeight, renderLine, onNearEnd, label, scrollTo, onKeyDown, columns, active, isSelected, onLineClick, listRef }) {
  const own = useRef(null);
  const root = listRef ?? own;
  const id = useId();
  const [view, setView] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const measure = () => root.current && setView({ top: root.current.scrollTop, height: root.current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(root.current);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(view.top / lineHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((view.top + view.height) / lineHeight) + OVERSCAN);
  useEffect(() => {
    if (last >= count - OVERSCAN) onNearEnd?.();
  }, [last, count]);
  useEffect(() => {
    if (scrollTo !== undefined && scrollTo !== null) reveal(root.current, scrollTo * lineHeight, lineHeight);
  }, [scrollTo]);
  const total = Math.min(count * lineHeight, MAX_HEIGHT_PX);
  const lines = [];
  for (let index = first; index < last; index += 1) lines.push(index);
  return html`
    <div class="virtual" ref=${root} tabindex="0" role="grid" aria-label=${label} aria-rowcount=${count} aria-colcount=${columns}
      aria-multiselectable=${isSelected ? "true" : undefined} aria-activedescendant=${active >= first && active < last ? `${id}-${active}` : undefined}
      onKeyDown=${onKeyDown} onScroll=${(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}>
      <div class="rows" style=${{ height: `${total}px` }} role="rowgroup">
        ${lines.map((index) => html`
          <div class=${classes("line", index === active && "active")} id="${id}-${index}" key=${index % POOL} role="row" aria-rowindex=${index + 1}
            aria-selected=${isSelected ? String(isSelected(index)) : undefined} onClick=${onLineClick && ((event) => onLineClick(index, event))} style=${{ top: `${index * lineHeight}px`, height: `${lineHeight}px` }}>
            ${renderLine(index)}
          </div>`)}
      </div>
    </div>`;
}

function reveal(element, top, height) {
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
}
