"use strict";
// Draws a trace. All times are in ticks from the beginning of the run; `data.tick` is one of them in seconds.

const COLORS = {
  plan: "#98a2ad", pack: "#e3b21c", code: "#a9782f", send: "#63b3ed", receive: "#2f6fb5", read: "#46bd8c",
  write: "#1d8757", sync: "#d1454f", wait: "#c3c8cf", agree: "#b39ddb", commit: "#7a4fb5", metadata: "#7d8590",
  "await plan": "#cdd2d8", "await sync": "#eba9ad", "await commit": "#cbb8e6", "await metadata": "#c0c5cb",
  application: "#f0894a", outside: null,
};
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };
const LABELS = 64, FOOT = 22;
const $ = (id) => document.getElementById(id);
let data, view, full, shownAt, colors, drawn = false;

async function unpack() {
  const text = $("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const heap = await new Response(stream).arrayBuffer();
  const length = Number(new DataView(heap).getBigUint64(0, true));
  const made = JSON.parse(new TextDecoder().decode(new Uint8Array(heap, 8, length)));
  const revive = (value) => {
    if (value === null || typeof value !== "object") return value;
    if ("at" in value && "type" in value) return new TYPES[value.type](heap, 8 + length + value.at, value.length);
    for (const key of Object.keys(value)) value[key] = revive(value[key]);
    return value;
  };
  for (const part of ["levels", "histogram", "path", "segments", "steps"]) revive(made[part]);
  return made;
}

// ---- words ---------------------------------------------------------------------------------------------------------

function seconds(value) {
  const units = [[1, "s"], [1e3, "ms"], [1e6, "\u00b5s"], [1e9, "ns"]];
  const [factor, unit] = units.find(([factor]) => Math.abs(value) * factor >= 1) || (value === 0 ? units[0] : units[3]);
  return `${Number((value * factor).toPrecision(3))} ${unit}`;
}

function size(bytes) {
  const units = [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]];
  const [factor, unit] = units.find(([factor]) => bytes >= factor) || [1, "B"];
  return `${Number((bytes / factor).toPrecision(3))} ${unit}`;
}

const number = (row) => (data.numbers ? data.numbers[row] : row);
const rankName = (row) => `${data.servers.includes(number(row)) ? "server" : "rank"} ${number(row)}`;
const stateName = (state) => (state === "outside" ? "outside of hyperslab" : state);

// ---- the view ------------------------------------------------------------------------------------------------------

function clamp() {
  const least = Math.max(1, full.t1 / 2 ** 31), span = Math.min(Math.max(view.t1 - view.t0, least), full.t1);
  view.t0 = Math.min(Math.max(view.t0, 0), full.t1 - span);
  view.t1 = view.t0 + span;
  const rows = Math.min(Math.max(view.r1 - view.r0, 1), data.ranks);
  view.r0 = Math.min(Math.max(view.r0, 0), data.ranks - rows);
  view.r1 = view.r0 + rows;
}

function zoomTime(factor, at) {
  view.t0 = at - (at - view.t0) * factor;
  view.t1 = at + (view.t1 - at) * factor;
  show();
}

function zoomRanks(factor, at) {
  view.r0 = at - (at - view.r0) * factor;
  view.r1 = at + (view.r1 - at) * factor;
  show();
}

function show(part = {}) {
  Object.assign(view, part);
  clamp();
  if (!drawn) {
    drawn = true;
    requestAnimationFrame(() => { drawn = false; draw(); });
  }
}

// ---- drawing -------------------------------------------------------------------------------------------------------

const rgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  colors = { ink: named("--ink"), faint: named("--faint"), line: named("--line"), path: named("--path"), card: named("--card") };
  colors.void = named("--void");
  colors.states = data.states.map((state) => COLORS[state] || colors.void);
  // A cell is paler the less of its time it was in its state.
  const paper = rgb(colors.card);
  colors.cells = new Uint32Array(256);
  for (let cell = 0; cell < 256; cell++) {
    const of = rgb(colors.states[cell & 31] || colors.void), share = 0.25 + 0.75 * ((cell >> 5) / 7);
    const [r, g, b] = of.map((value, i) => Math.round(paper[i] + (value - paper[i]) * share));
    colors.cells[cell] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
}

function fit(canvas, height) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (height) canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return [context, width, canvas.clientHeight];
}

function lane() {
  const canvas = $("timeline");
  return { left: LABELS, top: 4, width: canvas.clientWidth - LABELS - 8, height: canvas.clientHeight - FOOT - 4 };
}

function drawOverview() {
  const [context, width, height] = fit($("overview"));
  const { bins, parts } = data.histogram, count = data.states.length, left = LABELS, wide = width - LABELS - 8;
  context.clearRect(0, 0, width, height);
  for (let x = 0; x < wide; x++) {
    const low = Math.floor((x / wide) * bins), high = Math.max(low + 1, Math.floor(((x + 1) / wide) * bins));
    let y = height - 4;
    for (let state = 0; state < count - 1; state++) {
      let sum = 0;
      for (let bin = low; bin < high; bin++) sum += parts[bin * count + state];
      const tall = (sum / (high - low) / 65535) * (height - 8);
      context.fillStyle = colors.states[state];
      context.fillRect(left + x, y - tall, 1, tall);
      y -= tall;
    }
  }
  context.fillStyle = colors.faint;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText(data.ranks.toLocaleString("en"), left - 6, 13);
  context.fillText("0", left - 6, height - 5);
  const from = left + (view.t0 / full.t1) * wide, to = left + (view.t1 / full.t1) * wide;
  if (view.t0 > 0 || view.t1 < full.t1) {
    context.fillStyle = "rgba(128, 134, 142, .28)";
    context.fillRect(left, 1, from - left, height - 2);
    context.fillRect(to, 1, left + wide - to, height - 2);
  }
  context.strokeStyle = colors.ink;
  context.strokeRect(from + 0.5, 1.5, Math.max(to - from, 2) - 1, height - 3);
}

// The coarsest previews whose rows and columns are still at least as fine as the screen.
function levelFor(rowHeight) {
  return data.levels.findLast((level) => level.group * rowHeight <= 1.5) || data.levels[0];
}

function drawCells(context, box) {
  const level = levelFor(box.height / (view.r1 - view.r0));
  const wide = Math.max(1, Math.floor(box.width)), tall = Math.max(1, Math.floor(box.height));
  const image = new ImageData(wide, tall), pixels = new Uint32Array(image.data.buffer);
  const columns = new Int32Array(wide);
  for (let x = 0; x < wide; x++) {
    const time = view.t0 + ((x + 0.5) / wide) * (view.t1 - view.t0);
    columns[x] = Math.min(level.bins - 1, Math.floor((time / full.t1) * level.bins));
  }
  for (let y = 0; y < tall; y++) {
    const row = view.r0 + ((y + 0.5) / tall) * (view.r1 - view.r0);
    const at = Math.min(level.rows - 1, Math.floor(row / level.group)) * level.bins;
    for (let x = 0; x < wide; x++) pixels[y * wide + x] = colors.cells[level.cells[at + columns[x]]];
  }
  shownAt = level.group;
  const sheet = new OffscreenCanvas(wide, tall);
  sheet.getContext("2d").putImageData(image, 0, 0);
  context.drawImage(sheet, box.left, box.top);
}

// First of a rank's spans that ends after a time; `ends` rise with `begins` only for segments.
function firstEnding(table, low, high, time) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table.end[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

function rowsOf(place) {
  // Steps of a rank run together: each goes into the first line that is free.
  const table = data.steps, low = table.starts[place], high = table.starts[place + 1], ends = [];
  if (data.stepRows[place]) return data.stepRows[place];
  const rows = new Uint8Array(high - low);
  for (let i = low; i < high; i++) {
    let row = ends.findIndex((end) => end <= table.begin[i]);
    if (row < 0) row = ends.length < 24 ? ends.push(0) - 1 : 23;
    ends[row] = table.end[i];
    rows[i - low] = row;
  }
  data.stepRows[place] = { rows, count: Math.max(1, ends.length) };
  return data.stepRows[place];
}

function drawSpans(context, box, row, place) {
  const tall = box.height / (view.r1 - view.r0), y = box.top + (row - view.r0) * tall;
  const x = (time) => box.left + ((time - view.t0) / (view.t1 - view.t0)) * box.width;
  const bar = tall > 30 ? Math.min(18, tall * 0.45) : Math.max(1, tall - (tall > 4 ? 1 : 0));
  const table = data.segments, high = table.starts[place + 1];
  let covered = -1;
  context.fillStyle = colors.card;
  context.fillRect(box.left, y, box.width, tall);
  for (let i = firstEnding(table, table.starts[place], high, view.t0); i < high && table.begin[i] < view.t1; i++) {
    const from = Math.max(x(table.begin[i]), box.left), to = Math.min(x(table.end[i]), box.left + box.width);
    if (to < covered + 0.4) continue;
    covered = to;
    context.fillStyle = colors.states[table.state[i]];
    context.fillRect(from, y, Math.max(to - from, 0.6), bar);
  }
  if (tall <= 30) return;
  const { rows, count } = rowsOf(place), steps = data.steps, thick = Math.min(9, (tall - bar - 5) / count);
  for (let i = steps.starts[place]; i < steps.starts[place + 1]; i++) {
    if (steps.begin[i] >= view.t1) break;
    if (steps.end[i] <= view.t0) continue;
    const from = Math.max(x(steps.begin[i]), box.left), to = Math.min(x(steps.end[i]), box.left + box.width);
    context.fillStyle = colors.states[steps.state[i]];
    context.fillRect(from, y + bar + 2 + rows[i - steps.starts[place]] * thick, Math.max(to - from, 0.6), Math.max(thick - 1, 0.7));
  }
}

function drawPath(context, box) {
  const { row, begin, end } = data.path, tall = box.height / (view.r1 - view.r0);
  const x = (time) => box.left + ((time - view.t0) / (view.t1 - view.t0)) * box.width;
  const y = (at) => box.top + (at - view.r0) * tall + Math.min(tall / 2, tall > 30 ? 9 : tall / 2);
  context.strokeStyle = colors.path;
  context.lineWidth = 2.5;
  context.lineJoin = "round";
  context.beginPath();
  let visible = 0, last = null;
  for (let i = 0; i < row.length; i++) {
    if (end[i] < view.t0 || begin[i] > view.t1) { last = null; continue; }
    if (last === null) context.moveTo(x(begin[i]), y(row[i])); else context.lineTo(x(begin[i]), y(row[i]));
    context.lineTo(x(end[i]), y(row[i]));
    last = i;
    visible++;
  }
  context.stroke();
  context.lineWidth = 1;
  return visible;
}

function drawMessages(context, box) {
  const tall = box.height / (view.r1 - view.r0);
  const x = (time) => box.left + ((time - view.t0) / (view.t1 - view.t0)) * box.width;
  const y = (at) => box.top + (at - view.r0 + 0.5) * tall;
  let count = 0;
  context.strokeStyle = colors.ink;
  context.globalAlpha = 0.45;
  context.beginPath();
  for (const [from, begin, to, end] of data.messages) {
    if (end < view.t0 || begin > view.t1 || count > 3000) continue;
    context.moveTo(x(begin), y(from));
    context.lineTo(x(end), y(to));
    count++;
  }
  context.stroke();
  context.globalAlpha = 1;
}

function drawAxes(context, box, width, height) {
  context.fillStyle = colors.faint;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const span = (view.t1 - view.t0) * data.tick, power = 10 ** Math.floor(Math.log10(span / 6));
  const step = power * [1, 2, 5, 10].find((factor) => (span / (power * factor)) <= 8);
  const digits = Math.max(0, Math.ceil(-Math.log10(step * (span < 1e-3 ? 1e6 : span < 1 ? 1e3 : 1)) - 1e-9));
  const [factor, unit] = span < 1e-3 ? [1e6, "\u00b5s"] : span < 1 ? [1e3, "ms"] : [1, "s"];
  for (let n = Math.ceil((view.t0 * data.tick) / step); n * step <= view.t1 * data.tick; n++) {
    const x = box.left + ((n * step) / data.tick - view.t0) / (view.t1 - view.t0) * box.width;
    context.fillStyle = colors.line;
    context.fillRect(x, box.top + box.height, 1, 4);
    context.fillStyle = colors.faint;
    context.fillText(`${(n * step * factor).toFixed(digits)} ${unit}`, Math.min(x, width - 28), height - 6);
  }
  const tall = box.height / (view.r1 - view.r0), every = Math.max(1, Math.ceil(15 / tall));
  context.textAlign = "right";
  for (let row = Math.ceil(view.r0 / every) * every; row < view.r1; row += every) {
    const y = box.top + (row - view.r0 + 0.5) * tall;
    if (y > box.top + 4 && y < box.top + box.height) context.fillText(rankName(row), LABELS - 6, Math.min(y + 4, box.top + box.height));
  }
}

function draw() {
  drawOverview();
  const rows = Math.min(data.ranks, 64);
  const wanted = Math.max(180, Math.min(560, rows * (rows <= 8 ? 56 : rows <= 16 ? 32 : 14))) + FOOT;
  const [context, width, height] = fit($("timeline"), wanted), box = lane();
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.width, box.height);
  context.clip();
  drawCells(context, box);
  const tall = box.height / (view.r1 - view.r0);
  let detailed = 0;
  if (tall >= 2) {
    for (let row = Math.floor(view.r0); row < Math.min(Math.ceil(view.r1), data.ranks); row++) {
      const place = data.place.get(row);
      if (place !== undefined) { drawSpans(context, box, row, place); detailed++; }
    }
  }
  if ($("show-messages").checked) drawMessages(context, box);
  const stretches = $("show-path").checked ? drawPath(context, box) : 0;
  context.restore();
  drawAxes(context, box, width, height);
  const first = Math.floor(view.r0), last = Math.min(Math.ceil(view.r1), data.ranks) - 1;
  const which = first === last ? rankName(first) : `ranks ${number(first)} to ${number(last)}`;
  const groups = detailed ? "" : shownAt > 1 ? `, in groups of ${shownAt}` : "";
  $("where").textContent = `${which}${groups}, from ${seconds(view.t0 * data.tick)} to ${seconds(view.t1 * data.tick)}`;
  window.hyperslabTrace = { ready: true, view: { ...view }, full, detailed, stretches, group: shownAt, box, data };
}

// ---- what is under the pointer --------------------------------------------------------------------------------------

function describe(table, i, row) {
  const state = data.states[table.state[i]], begin = table.begin[i] * data.tick, end = table.end[i] * data.tick;
  const lines = [`${rankName(row)}: ${stateName(state)}, ${seconds(end - begin)}`];
  if (table.bytes[i] > 0) lines[0] += `, ${size(table.bytes[i])}` + (end > begin ? ` (${size(table.bytes[i] / (end - begin))}/s)` : "");
  if (table.peer[i] >= 0) lines.push(`${state === "send" ? "to" : state === "receive" ? "from" : "waits for"} ${data.servers.includes(table.peer[i]) ? "server" : "rank"} ${table.peer[i]}`);
  if (data.names[table.name[i]]) lines.push(data.names[table.name[i]]);
  if (table.round) lines.push(`step ${table.step[i]} of lane ${table.lane[i]}, round ${table.round[i]}`);
  lines.push(`from ${seconds(begin)} to ${seconds(end)}`);
  const call = data.calls.find((call) => call.begin <= begin + 1e-9 && end <= call.end + 1e-9);
  if (call) lines.push(`in ${call.what}`);
  return lines.join("\n");
}

function hit(x, y) {
  const box = lane();
  if (x < box.left || x > box.left + box.width || y < box.top || y > box.top + box.height) return null;
  const time = view.t0 + ((x - box.left) / box.width) * (view.t1 - view.t0);
  const at = view.r0 + ((y - box.top) / box.height) * (view.r1 - view.r0), row = Math.min(Math.floor(at), data.ranks - 1);
  const tall = box.height / (view.r1 - view.r0), place = data.place.get(row);
  if (place !== undefined && tall >= 2) {
    const inside = (at - row) * tall, bar = tall > 30 ? Math.min(18, tall * 0.45) : tall;
    if (inside > bar + 2) {
      const { rows, count } = rowsOf(place), steps = data.steps, thick = Math.min(9, (tall - bar - 5) / count);
      const wanted = Math.floor((inside - bar - 2) / thick), slack = ((view.t1 - view.t0) / box.width) * 1.5;
      for (let i = steps.starts[place]; i < steps.starts[place + 1] && steps.begin[i] <= time + slack; i++) {
        if (rows[i - steps.starts[place]] === wanted && steps.end[i] >= time - slack) return describe(steps, i, row);
      }
    }
    const table = data.segments, i = firstEnding(table, table.starts[place], table.starts[place + 1], time);
    return i < table.starts[place + 1] ? describe(table, i, row) : null;
  }
  const level = levelFor(tall), group = Math.floor(row / level.group);
  const column = Math.min(level.bins - 1, Math.floor((time / full.t1) * level.bins)), cell = level.cells[group * level.bins + column];
  const last = Math.min((group + 1) * level.group, data.ranks) - 1, width = (full.t1 * data.tick) / level.bins;
  const who = level.group === 1 ? rankName(row) : `ranks ${number(group * level.group)} to ${number(last)}`;
  return `${who}: mostly ${stateName(data.states[cell & 31])} (${Math.round(((cell >> 5) / 7) * 100)} %)\n` +
    `from ${seconds(column * width)} to ${seconds((column + 1) * width)}`;
}

function tell(event) {
  const of = $("timeline").getBoundingClientRect(), text = hit(event.clientX - of.left, event.clientY - of.top);
  const tip = $("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const y = event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 16;
  tip.style.left = `${x}px`;
  tip.style.top = `${y}px`;
}

// ---- moving about ---------------------------------------------------------------------------------------------------

function listen() {
  const canvas = $("timeline"), box = lane;
  const timeAt = (event) => view.t0 + ((event.clientX - canvas.getBoundingClientRect().left - box().left) / box().width) * (view.t1 - view.t0);
  const rowAt = (event) => view.r0 + ((event.clientY - canvas.getBoundingClientRect().top - box().top) / box().height) * (view.r1 - view.r0);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp((event.deltaY || event.deltaX) * 0.0022);
    if (event.shiftKey || event.altKey) zoomRanks(factor, rowAt(event)); else zoomTime(factor, timeAt(event));
    tell(event);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, ...view };
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return tell(event);
    const time = ((event.clientX - held.x) / box().width) * (held.t1 - held.t0);
    const rows = ((event.clientY - held.y) / box().height) * (held.r1 - held.r0);
    show({ t0: held.t0 - time, t1: held.t1 - time, r0: held.r0 - rows, r1: held.r1 - rows });
    $("tip").hidden = true;
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => { held = null; canvas.classList.remove("moving"); });
  }
  canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  canvas.addEventListener("dblclick", () => show({ ...full }));
  const overview = $("overview");
  let from = null;
  const overTime = (event) => {
    const of = overview.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - of.left - LABELS) / (of.width - LABELS - 8), 0), 1) * full.t1;
  };
  overview.addEventListener("pointerdown", (event) => { from = overTime(event); overview.setPointerCapture(event.pointerId); });
  overview.addEventListener("pointermove", (event) => {
    if (from !== null && Math.abs(overTime(event) - from) > full.t1 / 400) show({ t0: Math.min(from, overTime(event)), t1: Math.max(from, overTime(event)) });
  });
  overview.addEventListener("pointerup", () => { from = null; });
  overview.addEventListener("dblclick", () => show({ ...full }));
  const middle = () => (view.t0 + view.t1) / 2, span = () => view.t1 - view.t0;
  const acts = {
    "+": () => zoomTime(0.5, middle()), "=": () => zoomTime(0.5, middle()), "-": () => zoomTime(2, middle()), 0: () => show({ ...full }),
    ArrowLeft: () => show({ t0: view.t0 - span() / 5, t1: view.t1 - span() / 5 }),
    ArrowRight: () => show({ t0: view.t0 + span() / 5, t1: view.t1 + span() / 5 }),
    ArrowUp: () => zoomRanks(0.7, (view.r0 + view.r1) / 2), ArrowDown: () => zoomRanks(1.4, (view.r0 + view.r1) / 2),
  };
  canvas.addEventListener("keydown", (event) => { if (acts[event.key]) { event.preventDefault(); acts[event.key](); } });
  $("zoom-in").onclick = acts["+"];
  $("zoom-out").onclick = acts["-"];
  $("reset").onclick = acts[0];
  $("help-button").onclick = () => { $("help").hidden = !$("help").hidden; };
  $("show-path").onchange = $("show-messages").onchange = () => show();
  new ResizeObserver(() => show()).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); legend(); show(); });
}

// ---- tables ---------------------------------------------------------------------------------------------------------

function cells(row, values, tag = "td") {
  values.forEach((value, i) => {
    const cell = document.createElement(tag);
    if (i > 0) cell.className = "number";
    cell.textContent = value;
    row.append(cell);
  });
  return row;
}

function fill(id, head, rows) {
  $(id).append(cells(document.createElement("tr"), head, "th"));
  for (const values of rows) $(id).append(cells(document.createElement("tr"), values));
}

function legend() {
  $("legend").replaceChildren(...data.states.filter((state) => COLORS[state] && data.summary.states[state]).map((state) => {
    const item = document.createElement("span"), swatch = document.createElement("i");
    item.setAttribute("role", "listitem");
    swatch.style.background = COLORS[state];
    item.append(swatch, state);
    return item;
  }));
}

function tables() {
  const told = data.summary, percent = (part, whole) => `${((100 * part) / (whole || 1)).toFixed(1)} %`;
  const most = (states) => Object.entries(states).sort((a, b) => b[1] - a[1]);
  fill("states", ["state", "mean of ranks", ""], most(told.states).map(([state, s]) => [stateName(state), seconds(s), percent(s, told.seconds)]));
  const whole = Object.values(told.critical_path).reduce((a, b) => a + b, 0);
  fill("path", ["state", "on the path", ""], most(told.critical_path).map(([state, s]) => [stateName(state), seconds(s), percent(s, whole)]));
  $("predicted-part").hidden = !data.predicted.length;
  fill("predicted", ["phase", "predicted", "measured"], data.predicted.map((row) => [row.phase, row.predicted === null ? "-" : seconds(row.predicted), seconds(row.measured)]));
  fill("calls", ["call", "time", "rate", "strategy"], []);
  for (const call of told.calls) {
    const rate = call.bytes ? `${size(call.bytes / call.seconds)}/s` : "";
    const row = cells(document.createElement("tr"), [call.what, seconds(call.seconds), rate, call.strategy || ""]);
    if (call.cause) row.firstChild.append(Object.assign(document.createElement("small"), { textContent: call.cause }));
    row.className = "link";
    row.onclick = () => show({ t0: call.begin / data.tick, t1: (call.begin + call.seconds) / data.tick });
    $("calls").append(row);
  }
}

// Sends and the receives that meet them: the k-th of a pair of ranks in a call.
function matched() {
  const ends = new Map(), found = [], table = data.steps, send = data.states.indexOf("send"), receive = send + 1;
  const rows = new Map(data.shown.map((row) => [number(row), row]));
  const order = [];
  data.shown.forEach((row, place) => {
    for (let i = table.starts[place]; i < table.starts[place + 1]; i++) if (table.state[i] === send || table.state[i] === receive) order.push([row, i]);
  });
  order.sort((a, b) => table.call[a[1]] - table.call[b[1]] || table.lane[a[1]] - table.lane[b[1]] || table.step[a[1]] - table.step[b[1]]);
  for (const [row, i] of order) {
    const other = rows.get(table.peer[i]);
    if (other === undefined) continue;
    const sends = table.state[i] === send, key = `${table.call[i]} ${sends ? row : other} ${sends ? other : row}`;
    const pair = ends.get(key) || ends.set(key, [[], []]).get(key);
    pair[sends ? 0 : 1].push([row, i]);
  }
  for (const [sends, receives] of ends.values()) {
    sends.slice(0, receives.length).forEach(([row, i], k) => found.push([row, table.begin[i], receives[k][0], table.end[receives[k][1]]]));
  }
  return found;
}

async function main() {
  data = await unpack();
  data.place = new Map(data.shown.map((row, place) => [row, place]));
  data.stepRows = [];
  data.messages = matched();
  full = { t0: 0, t1: Math.max(data.seconds / data.tick, 1), r0: 0, r1: data.ranks };
  view = { ...full };
  const told = data.summary;
  $("title").textContent = data.title;
  $("facts").textContent = `${told.simulated ? "simulated" : "measured"}: ${data.ranks.toLocaleString("en")} ranks, ` +
    `${told.calls_in_all} calls, ${seconds(data.seconds)} from first to last` +
    (data.shown.length < data.ranks ? `; span by span on ${data.shown.length} ranks, in previews on all` : "");
  $("cause").textContent = told.cause;
  $("notes").textContent = data.notes.join("; ");
  readColors();
  legend();
  tables();
  listen();
  draw();
  document.body.dataset.ready = "1";
}

main().catch((error) => {
  document.body.dataset.failed = String(error);
  $("cause").textContent = `this page cannot be shown: ${error}`;
});
