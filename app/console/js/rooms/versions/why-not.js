// Why a version can or cannot be deleted: what S3 says of its protection, and what the simulator says of the rights.
import { callApi } from "../../api.js";
import { session } from "../../session.js";
import { isRetained } from "./version-facts.js";

/** Collects the reasons: [{ state: "good" | "bad" | "warn", title, text, simulation }], the strongest first. */
export async function explainDeletion(bucket, version, facts, signal) {
  const bypass = await askSimulator(bucket, version, "s3:BypassGovernanceRetention", signal);
  const right = await askSimulator(bucket, version, "s3:DeleteObjectVersion", signal);
  return [describeHold(facts.lock), describeRetention(facts.lock, bypass), describeRight(right, "s3:DeleteObjectVersion")].filter(Boolean);
}

async function askSimulator(bucket, version, action, signal) {
  const body = {
    principal: session.peek().arn, action, bucket, key: version.key, conditions: { "s3:VersionId": version.id },
  };
  try {
    return { answer: await callApi("POST", "simulation", { body, signal }) };
  } catch (error) {
    if (error.name === "AbortError" || error.status === 0 || error.status >= 500 || error.status === 401) throw error;
    return { refusal: error.message };
  }
}

function describeHold(lock) {
  if (!lock.hold) return { state: "good", title: "No legal hold" };
  return {
    state: "bad", title: "A legal hold is on",
    text: "Nobody can delete this version until somebody with s3:PutObjectLegalHold takes the hold off.",
  };
}

function describeRetention(lock, bypass) {
  if (!lock.mode) return { state: "good", title: "No retention" };
  if (!isRetained(lock)) return { state: "good", title: `Its ${lock.mode} retention has ended`, until: lock.until };
  if (lock.mode === "COMPLIANCE") {
    return { state: "bad", title: "COMPLIANCE retention", until: lock.until, text: "Nobody can delete it before then, not even the root account." };
  }
  const may = bypass.answer?.decision === "allowed";
  const text = may
    ? "You have s3:BypassGovernanceRetention: you can delete it if you choose to bypass the retention."
    : `Deleting it before then needs s3:BypassGovernanceRetention. ${bypass.answer?.reason ?? bypass.refusal}`;
  return { state: may ? "warn" : "bad", title: "GOVERNANCE retention", until: lock.until, text, simulation: bypass.answer };
}

function describeRight({ answer, refusal }, action) {
  if (refusal) return { state: "warn", title: `Your right to ${action} is not known`, text: refusal };
  const allowed = answer.decision === "allowed";
  const titles = { allowed: `You have ${action}`, denied: `You do not have ${action}`, depends: `Your right to ${action} depends on the object` };
  return { state: allowed ? "good" : "bad", title: titles[answer.decision], text: answer.reason, simulation: answer };
}
