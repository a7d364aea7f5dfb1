"use strict";
(() => {
  const list = document.getElementById("list");
  if (list) {
    const groups = () => [...list.tBodies];
    const box = document.getElementById("filter"), shown = document.getElementById("shown");
    const text = new Map(groups().map(g => [g, g.textContent.toLowerCase()]));
    box.closest(".tools").hidden = false;
    const filter = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0, all = 0;
      for (const g of groups()) {
        g.hidden = !words.every(w => text.get(g).includes(w));
        all += g.rows.length;
        if (!g.hidden) n += g.rows.length;
      }
      shown.textContent = n + " of " + all + " rows";
    };
    box.addEventListener("input", filter);
    filter();
    // A spreadsheet takes what begins with these for a formula, and names are anybody's.
    const quoted = c => { const t = c.textContent; return '"' + (/^[\s]*[=+\-@\t\r]/.test(t) ? "'" : "") + t.replace(/"/g, '""') + '"'; };
    document.getElementById("csv").addEventListener("click", () => {
      const rows = [list.tHead.rows[0], ...groups().filter(g => !g.hidden).flatMap(g => [...g.rows])];
      const a = document.createElement("a");
      a.href = URL.createObjectURL(new Blob([rows.map(r => [...r.cells].map(quoted).join(",")).join("\r\n") + "\r\n"], {type: "text/csv"}));
      a.download = "findings.csv";
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 1000);
    });
    const compare = new Intl.Collator("en", {numeric: true}).compare;
    [...list.tHead.rows[0].cells].forEach((th, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...th.childNodes);
      th.append(button);
      button.addEventListener("click", () => {
        const down = th.getAttribute("aria-sort") !== "descending" && (i === 0 || th.getAttribute("aria-sort") === "ascending");
        for (const other of list.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = g => { const c = g.rows[0].cells[i]; return c ? c.dataset.n || c.textContent : ""; };
        const order = groups().map(g => [key(g), g]).sort((a, b) => compare(a[0], b[0]) * (down ? -1 : 1));
        list.append(...order.map(x => x[1]));
      });
    });
  }
  const open = () => {
    const id = location.hash.slice(1), at = id && document.getElementById(id);
    for (const m of document.querySelectorAll(".mark")) m.classList.toggle("here", !!id && m.dataset.place === id);
    if (at && at.closest("details")) {
      for (let d = at.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
      at.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  for (const a of document.querySelectorAll("a[href^='#g']")) a.addEventListener("click", () => setTimeout(open));
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")].filter(d => !/^g\d/.test(d.id) || d.querySelector("strong"));
    for (const d of closed) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of closed) d.open = false; });
  open();
})();
