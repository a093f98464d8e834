// Fills the page's elements. Some text comes from strangers, so it is only ever set as text.

export const byId = (id) => document.getElementById(id);

/** Sets the text of `node` if it differs: unchanged text is not announced, and selections survive. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Like `say`, for text with live figures: the node never shrinks at the same width, so the page below does not move. */
export function sayLive(node, text) {
  if (node.dataset.width !== String(node.clientWidth)) node.style.minHeight = "";
  node.dataset.width = node.clientWidth;
  say(node, text);
  node.style.minHeight = `${node.getBoundingClientRect().height}px`;
}

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * Sets the rows of `body`, reusing existing ones. The first cell is the row's header. A cell is its text, or
 * {text, tone}; the table's head marks the columns of numbers.
 */
export function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, at) => fillRow(body.rows[at] ?? body.insertRow(), cells));
}

/** Like `fillRows`; without rows, one cell shows the text `nothing`. */
export function fillOr(body, rows, nothing) {
  if (rows.length) return fillRows(body, rows);
  if (body.dataset.nothing !== nothing || body.rows.length !== 1) {
    body.replaceChildren(make("tr", {}, make("td", { class: "nothing", colspan: headOf(body).length }, nothing)));
  }
  return undefined;
}

/** Sets the cells of one row. */
export function fillRow(row, cells) {
  if (row.cells[0]?.className === "nothing") row.replaceChildren();
  const heads = headOf(row.parentNode);
  const stacked = row.closest("table").classList.contains("stack");
  if (stacked) row.setAttribute("role", "row");
  cells.forEach((cell, at) => {
    const node = row.cells[at] ?? row.appendChild(cellOf(at, heads[at], stacked));
    say(node, cell.text ?? cell);
    if ((node.dataset.tone ?? "") !== (cell.tone ?? "")) node.dataset.tone = cell.tone ?? "";
  });
}

const headOf = (body) => body.parentNode.tHead.rows[0].cells;

function cellOf(at, head, stacked) {
  const node = at === 0 ? make("th", { scope: "row" }) : make("td");
  if (head.classList.contains("number")) node.className = "number";
  if (stacked) {
    node.dataset.label = head.textContent;
    node.setAttribute("role", at === 0 ? "rowheader" : "cell");
  }
  return node;
}

/** Sets explicit roles in a table that is laid out as a list on phones: browsers drop the implicit ones. */
export function keepRoles(table) {
  const say = (role, nodes) => [...nodes].forEach((node) => node.setAttribute("role", role));
  say("table", [table]);
  say("rowgroup", table.querySelectorAll("thead, tbody"));
  say("row", table.querySelectorAll("tr"));
  say("columnheader", table.querySelectorAll("thead th"));
}

/** Sets the terms of a list and their values. */
export function fillTerms(list, terms) {
  while (list.children.length > terms.length) list.lastElementChild.remove();
  terms.forEach(([term, value, tone = ""], at) => {
    const row = list.children[at] ?? list.appendChild(make("div", {}, make("dt"), make("dd")));
    say(row.children[0], term);
    say(row.children[1], value);
    if ((row.children[1].dataset.tone ?? "") !== tone) row.children[1].dataset.tone = tone;
  });
}
