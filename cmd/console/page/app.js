// SPDX-License-Identifier: Apache-2.0

// All texts reach the page as textContent. The page sends its token to its own origin only.

const tokenKey = "token";
const retryMilliseconds = 2000;
const marks = { good: "✓", attention: "◐", bad: "✕", spare: "○", neutral: "·" };
const byId = (id) => document.getElementById(id);
const tiles = new Map();
const racks = new Map();
let picture = { notes: [], clusters: [], machines: [], capacity: [] };
let selected = "";

function token() {
  if (location.hash.length > 1 && location.hash !== "#site") {
    sessionStorage.setItem(tokenKey, location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(tokenKey) ?? "";
}

function element(name, text, properties) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return Object.assign(made, properties);
}

function toned(name, text, tone, className) {
  const made = element(name, text, { className });
  made.dataset.tone = tone;
  return made;
}

function finding(of) {
  return of ? [toned("p", of.text, of.tone, "finding")] : [];
}

function drawNotes() {
  const notes = byId("notes");
  notes.hidden = picture.notes.length === 0;
  notes.replaceChildren(...picture.notes.map((text) => element("p", text)));
}

function poolOf(pool) {
  const box = element("div");
  const line = element("p", `${pool.key}: ${pool.nodes} nodes, version ${pool.version || "-"}`);
  line.append(toned("span", pool.state, pool.tone, "state"));
  box.append(line);
  if (pool.upgrade) {
    const text = `${pool.upgrade.done} of ${pool.upgrade.total} machines run ${pool.upgrade.to}`;
    const bar = element("progress", undefined, { max: Math.max(1, pool.upgrade.total), value: pool.upgrade.done });
    bar.setAttribute("aria-label", `Upgrade of ${pool.key}`);
    box.append(element("p", text, { className: "faint" }), bar);
  }
  box.append(...finding(pool.finding));
  return box;
}

function drawClusters() {
  byId("clusters").replaceChildren(...picture.clusters.map((cluster) => {
    const card = element("article", undefined, { className: "card" });
    const title = element("h3", cluster.key);
    title.append(toned("span", cluster.state, cluster.tone, "state"));
    const version = cluster.desired ? `${cluster.version || "-"} → ${cluster.desired}` : cluster.version || "-";
    const about = element("p", `version ${version}, ${cluster.nodes} nodes, API ${cluster.api}`, { className: "faint" });
    card.append(title, about, ...finding(cluster.finding), ...cluster.pools.map(poolOf));
    return card;
  }));
}

function rackOf(machine) {
  const key = JSON.stringify([machine.zone, machine.pool]);
  let rack = racks.get(key);
  if (!rack) {
    const box = element("section", undefined, { className: "rack" });
    const title = element("h3", `zone ${machine.zone || "not known"}, pool ${machine.pool || "any"}`);
    const list = element("div", undefined, { className: "tiles" });
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", title.textContent);
    box.append(title, list);
    rack = { box, list };
    racks.set(key, rack);
  }
  return rack;
}

function drawTile(machine) {
  let tile = tiles.get(machine.id);
  const drawn = JSON.stringify(machine);
  if (!tile) {
    tile = { button: element("button", undefined, { type: "button" }), drawn: "" };
    tile.button.dataset.id = machine.id;
    tile.button.tabIndex = -1;
    tiles.set(machine.id, tile);
  }
  if (tile.drawn === drawn) return tile.button;
  tile.drawn = drawn;
  const owner = machine.nodePool ? `${machine.cluster} · ${machine.nodePool.split("/").pop()}` : machine.owner || "no cluster";
  const parts = machine.nodePool ? [machine.cluster, machine.nodePool].map((key) => key.split("/").pop()) : [owner];
  const mark = machine.quarantined ? "⊘" : marks[machine.tone];
  tile.button.className = machine.quarantined ? "tile quarantined" : "tile";
  tile.button.dataset.tone = machine.tone;
  tile.button.replaceChildren(
    element("span", `${mark} ${machine.name}`, { className: "name" }),
    ...parts.map((text) => element("span", text)), element("span", machine.state));
  const words = [machine.name, machine.state, owner, machine.quarantined ? "quarantined" : "", machine.finding?.text ?? ""];
  tile.button.setAttribute("aria-label", words.filter(Boolean).join(", "));
  tile.text = [...words, machine.zone, machine.pool, machine.systemID, ...machine.tags].join(" ").toLowerCase();
  return tile.button;
}

// place puts nodes into a parent in order, and moves only those that are not in their place: the focus stays.
function place(parent, nodes) {
  const keep = new Set(nodes);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  nodes.forEach((node, at) => {
    if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] ?? null);
  });
}

function drawSite() {
  const contents = new Map();
  const alive = new Set();
  for (const machine of picture.machines) {
    alive.add(machine.id);
    const rack = rackOf(machine);
    if (!contents.has(rack)) contents.set(rack, []);
    contents.get(rack).push(drawTile(machine));
  }
  for (const id of tiles.keys()) if (!alive.has(id)) tiles.delete(id);
  for (const [key, rack] of racks) if (!contents.has(rack)) racks.delete(key);
  place(byId("site"), [...contents.keys()].map((rack) => rack.box));
  for (const [rack, buttons] of contents) place(rack.list, buttons);
  filter();
}

function filter() {
  const wanted = byId("filter").value.trim().toLowerCase();
  for (const tile of tiles.values()) tile.button.hidden = wanted !== "" && !tile.text.includes(wanted);
  for (const rack of racks.values()) {
    const visible = [...rack.list.children].filter((button) => !button.hidden);
    rack.box.hidden = visible.length === 0;
    // The Tab key visits one tile of each rack; the arrow keys visit the others.
    if (!visible.some((button) => button.tabIndex === 0)) {
      for (const button of rack.list.children) button.tabIndex = -1;
      if (visible.length > 0) visible[0].tabIndex = 0;
    }
  }
}

function drawCapacity() {
  byId("capacity").replaceChildren(...picture.capacity.map((need) => {
    const row = element("tr");
    row.append(...[need.nodePool || "-", need.nodes || "-", need.fit, need.reason].map((text) => element("td", String(text))));
    return row;
  }));
}

function drawDetails() {
  const machine = picture.machines.find((m) => m.id === selected);
  if (!machine) {
    byId("details").close();
    return;
  }
  byId("details-title").textContent = machine.name;
  const rows = [
    ["State", machine.state], ["Condition", machine.finding?.text], ["Quarantined", machine.quarantined ? "yes" : ""],
    ["HostedCluster", machine.cluster], ["NodePool", machine.nodePool], ["Machine", machine.machine],
    ["Infrastructure", machine.infrastructure], ["Node", machine.node], ["Version", machine.version],
    ["Used by", machine.owner], ["Zone", machine.zone], ["Resource pool", machine.pool], ["Tags", machine.tags.join(", ")],
    ["System ID", machine.systemID],
  ];
  const list = byId("details-list");
  list.replaceChildren();
  for (const [label, text] of rows) if (text) list.append(element("dt", label), element("dd", text));
  if (/^https?:\/\//.test(machine.link)) {
    const value = element("dd");
    value.append(element("a", machine.link, { href: machine.link, target: "_blank", rel: "noopener noreferrer" }));
    list.append(element("dt", "In MAAS"), value);
  }
}

function draw() {
  const spare = picture.machines.filter((m) => m.tone === "spare").length;
  const quarantined = picture.machines.filter((m) => m.quarantined).length;
  byId("summary").textContent = `${picture.clusters.length} clusters, ${picture.machines.length} machines, ` +
    `${spare} spare, ${quarantined} quarantined`;
  drawNotes();
  drawClusters();
  drawSite();
  drawCapacity();
  if (byId("details").open) drawDetails();
}

function move(event) {
  const button = event.target.closest(".tile");
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 0, ArrowUp: 0, Home: 0, End: 0 };
  if (!button || !(event.key in steps)) return;
  event.preventDefault();
  const all = [...button.parentElement.children].filter((other) => !other.hidden);
  const at = all.indexOf(button);
  const columns = Math.max(1, all.filter((other) => other.offsetTop === all[0].offsetTop).length);
  const to = { ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: all.length - 1 }[event.key] ?? at + steps[event.key];
  if (!all[to]) return;
  button.tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus();
}

function connection(text) {
  if (byId("connection").textContent !== text) byId("connection").textContent = text;
}

function receive(message) {
  const data = message.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
  if (!data) return;
  picture = JSON.parse(data);
  connection(picture.loading ? "Loading" : "Live");
  requestAnimationFrame(draw);
}

// An EventSource cannot send a token in a header, so that the stream is read with fetch.
async function follow() {
  const response = await fetch("api/events", { headers: { Authorization: `Bearer ${token()}` }, cache: "no-store" });
  if (!response.ok) throw new Error((await response.text()).trim());
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the command has ended");
    const messages = (text + value).split("\n\n");
    text = messages.pop();
    messages.forEach(receive);
  }
}

async function run() {
  for (;;) {
    try {
      await follow();
    } catch (error) {
      connection(`Not connected: ${error.message}`);
    }
    await new Promise((resolve) => setTimeout(resolve, retryMilliseconds));
  }
}

byId("site").addEventListener("click", (event) => {
  const button = event.target.closest(".tile");
  if (!button) return;
  selected = button.dataset.id;
  byId("details").showModal();
  drawDetails();
});
byId("site").addEventListener("keydown", move);
byId("filter").addEventListener("input", filter);
window.addEventListener("hashchange", token);
run();
