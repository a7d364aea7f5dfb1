"use strict";
// Search: topics that have all the words, their stems or their synonyms, as fabsh help -k does; those
// whose name has them come first.
(() => {
  const box = document.getElementById("search"), input = document.getElementById("words"), found = document.getElementById("found");
  const sections = Array.from(document.querySelectorAll("main section"), (section) => ({
    section,
    topics: Array.from(section.querySelectorAll("article"), (article) => ({
      article,
      name: article.querySelector("h3").textContent.toLowerCase(),
      text: article.textContent.toLowerCase(),
    })),
  }));
  const { ignored, synonyms } = JSON.parse(document.getElementById("tables").textContent);
  const stem = (word) => {
    for (const ending of ["ing", "ed"]) {
      const bare = word.slice(0, -ending.length), n = bare.length;
      if (!word.endsWith(ending) || n < 3) continue;
      return bare[n - 1] === bare[n - 2] && "bdgmnprt".includes(bare[n - 1]) ? bare.slice(0, -1) : bare;
    }
    if (word.endsWith("ies") && word.length >= 5) return word.slice(0, -3) + "y";
    return word.endsWith("s") && word.length >= 4 && !word.endsWith("ss") ? word.slice(0, -1) : word;
  };
  const formsOf = (word) => [word, stem(word), ...(synonyms[word] || []), ...(synonyms[stem(word)] || [])];
  const nav = document.querySelector("nav");
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).map((w) => w.replace(/[?,;]+$/, "")).filter((w) => w && !ignored.includes(w));
    const forms = words.map(formsOf);
    let n = 0, first = null, named = null;
    for (const s of sections) {
      let here = 0;
      for (const t of s.topics) {
        const match = forms.every((f) => f.some((w) => t.text.includes(w)));
        t.article.hidden = !match;
        if (!match) continue;
        here++;
        first = first || t;
        if (!named && words.length && forms.every((f) => f.some((w) => t.name.includes(w)))) named = t;
        if (words.length === 1 && t.name === words[0] && (!named || named.name !== words[0])) named = t;
      }
      s.section.hidden = !here;
      n += here;
    }
    nav.hidden = words.length > 0;
    found.textContent = !words.length ? "" : n === 1 ? "1 topic" : n + " topics";
    return named || first;
  };
  box.hidden = false;
  input.addEventListener("input", search);
  addEventListener("keydown", (e) => {
    if (e.key === "/" && document.activeElement !== input) {
      e.preventDefault();
      input.focus();
      input.select();
    } else if (e.key === "Escape") {
      input.value = "";
      search();
    } else if (e.key === "Enter" && document.activeElement === input) {
      const t = search();
      if (t && input.value.trim()) t.article.scrollIntoView();
    }
  });
  // A link into what the search hides shows all.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && (target.hidden || target.closest("[hidden]"))) {
      input.value = "";
      search();
      target.scrollIntoView();
    }
  });
})();
