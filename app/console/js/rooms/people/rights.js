// What the caller may do with IAM: what it may not do is not shown.
import { callApi } from "../../api.js";
import { useResource } from "../../resource.js";

/** Loads the rights on some resources, as `may(operation, arn)`; `may(operation)` is about the first. */
export async function loadRights(arns, signal) {
  const { rights } = await callApi("GET", "people/rights", { query: arns.map((arn) => ["resource", arn]), signal });
  return (operation, arn = arns[0]) => Boolean(rights[arn]?.includes(operation));
}

/** The same as a resource; `may` says no until that is known: const { may, known, error, reload } = useRights([arn]). */
export function useRights(arns) {
  const { data, error, reload } = useResource((signal) => loadRights(arns, signal), arns);
  return { may: data ?? (() => false), known: data !== undefined, error, reload };
}
