// Buttons and forms that change something through the API, once each; and the runs that are chosen for a comparison.
const FEWEST = 2, MOST = 5;

function field(form, input) {
  const text = input.value.trim();
  if (input.type === "checkbox") return input.checked;
  if (text === "") return "null" in input.dataset ? null : undefined;
  return input.type === "number" ? Number(text) : text;
}

function body(elt) {
  const sent = JSON.parse(elt.dataset.body ?? "{}");
  for (const input of elt instanceof HTMLFormElement ? elt.elements : []) {
    if (elt.matches("[hx-patch]:not([data-whole])") && input.value === input.defaultValue) continue; // others may have changed it
    const value = input.name ? field(elt, input) : undefined;
    if (value === undefined) continue;
    const path = input.name.split("/"), last = path.pop(); // targets/seconds: a member of a member
    let at = sent;
    for (const name of path) at = at[name] ??= {};
    at[last] = "list" in input.dataset ? [value] : value;
  }
  return sent;
}

function key() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

htmx.defineExtension("api", {
  onEvent(name, event) {
    const { elt, headers, verb } = event.detail ?? {};
    if (name !== "htmx:configRequest" || verb === "delete") return true;
    headers["Content-Type"] = "application/json";
    if (verb === "post") headers["Idempotency-Key"] = elt.dataset.key ??= key(); // sent twice, it is done once
    return true;
  },
  encodeParameters(xhr, parameters, elt) {
    return JSON.stringify(body(elt));
  },
});

document.addEventListener("htmx:afterRequest", ({ detail: { elt, xhr, successful } }) => {
  if (!elt.matches("[hx-ext=api]")) return;
  const told = elt.closest("section, article, main").querySelector("[data-refused]");
  let answer = {};
  try {
    answer = JSON.parse(xhr.responseText);
  } catch {
    // nothing was answered, or nothing needs to be said
  }
  if (successful) {
    if (told) told.textContent = "";
    for (const button of elt.matches("button") ? [elt] : elt.querySelectorAll("button")) {
      setTimeout(() => (button.disabled = true)); // after htmx has enabled it: the page is about to change
    }
    if (elt.dataset.goto) location.assign(elt.dataset.goto.replace("{id}", answer.id ?? ""));
    return;
  }
  // A refusal leaves the key free; 422 also says that it was used with another request. After 409 and 5xx the first
  // request may still be going on: the next one gets its answer.
  if (xhr.status === 422) delete elt.dataset.key;
  if (told) told.textContent = answer.detail ?? "";
});

// Runs that are chosen for a comparison stay chosen when their table is fetched again.
const chosen = new Set();

function show() {
  for (const id of chosen) if (!document.getElementById(`pick-${id}`)) chosen.delete(id); // no longer in the table
  for (const box of document.querySelectorAll("[data-compare] input[name=run]")) {
    box.checked = chosen.has(box.value);
    box.disabled = chosen.size >= MOST && !box.checked;
  }
  for (const button of document.querySelectorAll("[data-compare] > button")) {
    button.disabled = chosen.size < FEWEST;
    button.textContent = chosen.size ? `Compare ${chosen.size} of at most ${MOST}` : `Compare ${FEWEST} to ${MOST} runs`;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-compare] input[name=run]")) return;
  if (target.checked) chosen.add(target.value);
  else chosen.delete(target.value);
  show();
});
document.addEventListener("htmx:afterSwap", show);
for (const box of document.querySelectorAll("[data-compare] input[name=run]:checked")) chosen.add(box.value); // kept by the browser
show();
