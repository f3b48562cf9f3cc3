// What the caller may do with IAM: what it may not do is not shown.
import { callApi } from "../../api.js";
import { useResource } from "../../resource.js";

/**
 * Returns `may(operation, arn)` for some resources, false until that is known: const { may, known } = useRights([arn]).
 * `may(operation)` is about the first.
 */
export function useRights(arns) {
  const { data, error, reload } = useResource(
    (signal) => callApi("GET", "people/rights", { query: arns.map((arn) => ["resource", arn]), signal }),
    arns,
  );
  const may = (operation, arn = arns[0]) => Boolean(data?.rights[arn]?.includes(operation));
  return { may, known: data !== undefined, error, reload };
}
