// Comfort only: each state of a page is an address that the server answers without this script. It
// writes text and attributes, and requests nothing.
"use strict";
const $ = (s, r = document) => r.querySelector(s), $$ = (s, r = document) => [...r.querySelectorAll(s)];
for (const e of $$(".js")) e.hidden = false;

// Times in the zone of the viewer.
const zone = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
for (const t of $$("time[datetime]")) {
  const d = new Date(t.dateTime);
  if (!isNaN(d) && /\d\d:\d\d/.test(t.textContent)) { t.title = t.textContent; t.textContent = zone.format(d).replaceAll(",", "").replace(" at ", " "); }
}
if ($("#zone")) $("#zone").textContent = "Times of lists are of your zone, " + Intl.DateTimeFormat().resolvedOptions().timeZone;

// The age of the reading: stale after three missed cycles.
const fresh = $("#fresh");
if (fresh && +fresh.dataset.every) {
  const began = Date.now() - fresh.dataset.age * 1000;
  const tick = () => {
    const s = Math.round((Date.now() - began) / 1000);
    fresh.classList.toggle("stale", s > 3 * fresh.dataset.every);
    $(".age", fresh).textContent = "Read " + (s < 120 ? s + " s" : s < 7200 ? Math.floor(s / 60) + " min" : Math.floor(s / 3600) + " h") + " ago,";
  };
  tick();
  setInterval(tick, 1000);
}

// "/" goes to the search.
addEventListener("keydown", e => { if (e.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) { e.preventDefault(); $("#q").focus(); } });

// Tables sort by a head, and filter by a word.
for (const table of $$("table[data-sort]")) $$("thead th", table).forEach((th, i) => {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = th.textContent;
  th.replaceChildren(b);
  b.onclick = () => {
    const down = th.getAttribute("aria-sort") === "ascending", key = r => r.cells[i].textContent.trim().replace(/(\d),(?=\d{3})/g, "$1");
    $$("th", table).forEach(o => o.removeAttribute("aria-sort"));
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort((a, c) => key(a).localeCompare(key(c), "en", { numeric: true }) * (down ? -1 : 1)));
  };
});
for (const f of $$("[data-filter]")) f.oninput = () => {
  const rows = [...$("#" + f.dataset.filter).tBodies[0].rows], w = f.value.toLowerCase();
  rows.forEach(r => r.hidden = !r.textContent.toLowerCase().includes(w));
  $("[data-count=" + f.dataset.filter + "]").textContent = rows.filter(r => !r.hidden).length + " of " + rows.length;
};

// One Tab stop for each row of groups, and each matrix; arrows inside.
const rove = (list, columns) => {
  const start = list.find(x => x.getAttribute("aria-current") || x.querySelector(".down, .slow")) || list[0];
  list.forEach((x, i) => {
    x.tabIndex = x === start ? 0 : -1;
    x.addEventListener("keydown", e => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[e.key], to = list[i + step];
      if (!to) return;
      e.preventDefault();
      list.forEach(y => y.tabIndex = -1);
      to.tabIndex = 0;
      to.focus();
    });
  });
};
for (const row of $$(".tiles")) if ($("a", row)) rove($$("a", row), +row.className.replace(/\D/g, "") || 1);
for (const m of $$(".matrix")) if ($("a", m)) rove($$("a", m), 1);

// The slider sets the field.
const slider = $("#slider");
if (slider) slider.oninput = () => {
  const d = new Date(new Date(slider.dataset.end) - (slider.max - slider.value) * 3600e3), two = n => String(n).padStart(2, "0");
  const text = d.getUTCFullYear() + "-" + two(d.getUTCMonth() + 1) + "-" + two(d.getUTCDate()) + "T" + two(d.getUTCHours()) + ":" + two(d.getUTCMinutes());
  $("#at").value = text;
  slider.setAttribute("aria-valuetext", d.toDateString() + " " + text.slice(11));
};
