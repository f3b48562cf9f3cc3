// Where a text stops being JSON: browsers tell it in different words, and often not the place.
const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const EXPECTED = {
  value: "a value", key: "a name in double quotes", firstKey: "a name in double quotes or }", firstValue: "a value or ]",
  colon: "a colon", end: "the end",
};

/** Returns { position, expected } of the first fault, null for JSON. */
export function findJsonFault(text) {
  const open = [];
  let at = 0;
  let state = "value";
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return Boolean(found);
  };
  const close = () => {
    open.pop();
    at += 1;
    state = open.length ? "after" : "end";
  };
  const enter = (end) => {
    open.push(end);
    at += 1;
    state = end === "}" ? "firstKey" : "firstValue";
  };
  for (;;) {
    take(SPACE);
    const sign = text[at];
    const inValue = state === "value" || state === "firstValue";
    if (state === "end" && sign === undefined) return null;
    if (sign !== undefined && sign === open.at(-1) && ["firstKey", "firstValue", "after"].includes(state)) close();
    else if (inValue && sign === "{") enter("}");
    else if (inValue && sign === "[") enter("]");
    else if (inValue && (take(STRING) || take(LITERAL))) state = open.length ? "after" : "end";
    else if ((state === "key" || state === "firstKey") && take(STRING)) state = "colon";
    else if (state === "colon" && sign === ":") [at, state] = [at + 1, "value"];
    else if (state === "after" && sign === ",") [at, state] = [at + 1, open.at(-1) === "}" ? "key" : "value"];
    else return { position: at, expected: state === "after" ? `a comma or ${open.at(-1)}` : EXPECTED[state] };
  }
}
