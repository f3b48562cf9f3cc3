// What is wrong with lifecycle rules, before S3 says so.
import { numberProblem } from "../inputs.js";

const MAX_SIZE = 1_099_511_627_776_000;

/** Returns the problems by "rules.INDEX.FIELD". */
export function problemsOf(rules) {
  const found = { rules: rules.length ? "" : "Add a rule, or remove the setting." };
  rules.forEach((rule, index) => {
    for (const [name, problem] of Object.entries(ofRule(rule, rules.slice(0, index)))) found[`rules.${index}.${name}`] = problem;
  });
  return found;
}

function ofRule(rule, before) {
  const parts = rule.filter ?? {};
  const acts = rule.expiration || rule.noncurrent || rule.transitions.length || rule.olderTransitions.length || rule.abort;
  const narrow = (parts.tags ?? []).length > 0 || parts.larger || parts.smaller;
  const keysOnly = narrow && (rule.abort || rule.expiration?.markers !== null && rule.expiration?.markers !== undefined);
  return {
    actions: !acts ? "Choose at least one action." : keysOnly ? "Aborting uploads and removing lone delete markers goes with a prefix only, not with tags or sizes: make a rule of its own." : "",
    id: (rule.id ?? "").length > 255 ? "At most 255 characters." : rule.id && before.some((other) => other.id === rule.id) ? "Another rule has this name." : "",
    larger: numberProblem(parts.larger, { least: 0, most: MAX_SIZE, required: false }),
    smaller: numberProblem(parts.smaller, { least: 1, most: MAX_SIZE, required: false }) || (parts.larger && parts.smaller && Number(parts.smaller) <= Number(parts.larger) ? "It must be more than the other." : ""),
    tags: tagProblem(parts.tags ?? []),
    expiration: rule.expiration ? ofExpiration(rule.expiration) : "",
    noncurrent: rule.noncurrent ? numberProblem(rule.noncurrent.days) : "",
    newer: rule.noncurrent ? numberProblem(rule.noncurrent.newer, { required: false }) : "",
    abort: rule.abort ? numberProblem(rule.abort.days) : "",
    transitions: rule.transitions.map((one) => (one.date === null ? numberProblem(one.days, { least: 0 }) : "")).find(Boolean) ?? "",
    olderTransitions: rule.olderTransitions.map((one) => numberProblem(one.days)).find(Boolean) ?? "",
  };
}

function ofExpiration({ days, date, markers }) {
  if (markers !== null) return "";
  return date === null ? numberProblem(days) : /^\d{4}-\d\d-\d\d/.test(date) ? "" : "Choose a day.";
}

function tagProblem(tags) {
  if (tags.some((tag) => !tag.key)) return "Each tag needs a key.";
  return new Set(tags.map((tag) => tag.key)).size < tags.length ? "Each key may stand once." : "";
}
