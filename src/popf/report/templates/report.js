"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Format numbers as in Python, so that the page shows exactly what popf computes.
  const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
  const percent = (share) => (Number.isFinite(share) ? (100 * share).toFixed(1) + "\u00a0%" : "–");
  const place = (share) => (100 * share).toFixed(2) + "%";
  const thresholdText = (value) => {
    const short = value.toFixed(3);
    return Number(short) === value ? short : String(Number(value.toPrecision(6)));
  };

  // Bring the sections about one class to life.
  const look = (data) => {
    const total = data.positive + data.negative;
    const state = { theta: data.start, ratio: data.ratio };
    const costAt = (k) => (data.alarms[k] + (data.positive - data.hits[k]) * state.ratio) / total;
    // The threshold of lowest cost; ties, up to rounding, go to the nearest to 0.5, then to the lower.
    const cheapest = () => {
      const costs = data.thresholds.map((_, k) => costAt(k));
      const limit = costs.reduce((a, b) => Math.min(a, b)) * (1 + 1e-12);
      const distance = (k) => Number(Math.abs(data.thresholds[k] - 0.5).toFixed(12));
      let found = -1;
      costs.forEach((cost, k) => {
        if (cost <= limit && (found < 0 || distance(k) < distance(found))) found = k;
      });
      return found;
    };

    const show = (id, text) => { $(id).textContent = text; };
    const moveDot = (name, across, up) => {
      const dot = document.querySelector(`[data-dot="${name}"]`);
      dot.setAttribute("visibility", Number.isFinite(up) ? "visible" : "hidden");
      if (!Number.isFinite(up)) return;
      dot.setAttribute("cx", place(across));
      dot.setAttribute("cy", place(1 - up));
    };

    let speech = 0;
    const speak = (text) => {
      // Announce only when the slider rests; otherwise a screen reader would read every step.
      clearTimeout(speech);
      speech = setTimeout(() => show("spoken", text), 350);
    };

    const drawThreshold = () => {
      const k = state.theta;
      const theta = data.thresholds[k];
      const hits = data.hits[k];
      const alarms = data.alarms[k];
      const recall = hits / data.positive;
      const scores = {
        accuracy: 1 - (data.positive - hits + alarms) / total,
        balanced_accuracy: (recall + (1 - alarms / data.negative)) / 2,
        precision: hits / (hits + alarms),
        recall,
      };
      show("hits", count(hits));
      show("misses", count(data.positive - hits));
      show("alarms", count(alarms));
      show("passes", count(data.negative - alarms));
      for (const [name, value] of Object.entries(scores)) {
        show(name, percent(value));
        moveDot(name, theta, value);
      }
      moveDot("gain", (hits + alarms) / total, recall);
      show("mean-cost", (1000 * costAt(k)).toFixed(1));
      show("theta-text", thresholdText(theta));
      $("theta").value = String(k);
      $("theta").setAttribute("aria-valuetext", thresholdText(theta));
      const words =
        `${count(hits + alarms)} of ${count(total)} samples are flagged as “${data.event}”: ` +
        `${count(hits)} correctly, ${count(alarms)} as false alarms. Missed: ${count(data.positive - hits)} ` +
        `of ${count(data.positive)}.`;
      show("sentence", words);
      speak(`Threshold ${thresholdText(theta)}. ${words}`);
      for (const cursor of document.querySelectorAll(".cursor")) {
        cursor.setAttribute("x1", 100 * theta + "%");
        cursor.setAttribute("x2", 100 * theta + "%");
      }
      for (const row of body.rows) {
        row.querySelector(".flagged").textContent = row.probability >= theta ? "flagged" : "not flagged";
      }
    };

    const drawCost = () => {
      const ratio = state.ratio;
      const costs = data.thresholds.map((_, k) => costAt(k));
      // At most 1.5 times the cost of flagging nobody or everybody, whichever is cheaper.
      const trivial = Math.min(data.negative, data.positive * ratio) / total;
      const top = Math.min(1.5 * trivial, costs.reduce((a, b) => Math.max(a, b))) || 1;
      const points = costs.map(
        (cost, k) => `${(1000 * data.thresholds[k]).toFixed(1)} ${(1000 * (1 - cost / top)).toFixed(1)}`
      );
      document.querySelector(".curves .line.cost").setAttribute("d", "M" + points.join("L"));
      const best = cheapest();
      moveDot("best", data.thresholds[best], costs[best] / top);
      moveDot("cost", data.thresholds[state.theta], Math.min(costs[state.theta] / top, 1));
      show("cost-top", (1000 * top).toFixed(0));
      $("cost").value = String(Math.log10(ratio));
      $("cost").setAttribute("aria-valuetext", String(ratio));
      show("best", thresholdText(data.thresholds[best]));
      show("exact", (1 / (1 + ratio)).toFixed(3));
    };

    const redraw = () => { drawThreshold(); drawCost(); };
    const choose = (k) => { state.theta = k; redraw(); };
    const nearest = (theta) => {
      let found = 0;
      data.thresholds.forEach((value, k) => {
        if (Math.abs(value - theta) < Math.abs(data.thresholds[found] - theta)) found = k;
      });
      return found;
    };

    // The table: sort by a column, select a row.
    const people = $("people");
    const body = people.tBodies[0];
    const probabilityCell = people.tHead.rows[0].querySelector("[aria-sort]").cellIndex;
    for (const row of body.rows) row.probability = Number(row.cells[probabilityCell].dataset.key);
    const keyOf = (row, column, numbers) => {
      const cell = row.cells[column];
      const key = cell.dataset.key ?? cell.textContent;
      return numbers ? Number(key) : key;
    };
    const words = new Intl.Collator("en", { numeric: true });
    const sortBy = (header, numbers) => {
      const column = header.cellIndex;
      const before = header.getAttribute("aria-sort");
      const first = numbers && header.textContent === "Probability" ? "descending" : "ascending";
      const other = { ascending: "descending", descending: "ascending" };
      const order = before ? other[before] : first;
      for (const one of header.parentNode.cells) one.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [keyOf(row, column, numbers), row]);
      rows.sort(([a], [b]) => sign * (numbers ? a - b : words.compare(a, b)));
      body.append(...rows.map(([, row]) => row));
    };
    for (const button of people.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        sortBy(button.closest("th"), button.dataset.kind === "number");
      });
    }

    const make = (name, text, kind) => {
      const element = document.createElement(name);
      if (text !== undefined) element.textContent = text;
      if (kind) element.className = kind;
      return element;
    };
    const svg = (name, attributes) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    const nodeItem = ([name, label, kind]) => {
      const item = make("li", undefined, `node ${kind}`);
      item.append(make("b", name), label ? ` “${label}”` : "");
      if (kind === "prototype") item.append(", a prototype");
      return item;
    };
    const stepItem = ([length, share, longest, leftOut]) => {
      if (leftOut) return make("li", `not shown: ${leftOut} training sample${leftOut > 1 ? "s" : ""} with shorter steps`, "step gap");
      const item = make("li", undefined, longest ? "step longest" : "step");
      const bar = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(svg("rect", { class: "part", height: "10", width: String(Math.max(1, 100 * share)) }));
      item.append(bar, length + (longest ? ", the longest step" : ""));
      return item;
    };
    const termRow = ([name, share], low, high) => {
      const row = make("tr", undefined, share > 0 ? "for" : "against");
      const head = make("th", name, "words");
      head.scope = "row";
      const bar = svg("svg", {
        viewBox: `${low} 0 ${high - low} 10`, preserveAspectRatio: "none", "aria-hidden": "true",
      });
      bar.append(svg("rect", { class: "part", height: 10, width: Math.abs(share), x: Math.min(0, share) }));
      bar.append(svg("path", { class: "zero-line", d: "M0 0V10" }));
      const cell = make("td", undefined, "bar-cell");
      cell.append(bar);
      row.append(head, cell, make("td", (share < 0 ? "−" : "+") + Math.abs(share).toFixed(2)));
      return row;
    };
    const featureTable = (path) => {
      if (!path.features.length) return [];
      const table = make("table");
      table.append(make("caption", "Features along the path"));
      const head = table.createTHead().insertRow();
      // The sample comes first, because the table may be wider than the page.
      const names = path.nodes.map(([name, , kind]) => (kind === "prototype" ? kind : name));
      const heads = ["Feature", ...names.reverse()];
      heads.forEach((text, column) => {
        const cell = make("th", text, column ? "" : "words");
        cell.scope = "col";
        head.append(cell);
      });
      const rows = table.createTBody();
      for (const [name, ...values] of path.features) {
        const row = rows.insertRow();
        const cell = make("th", name, "words");
        cell.scope = "row";
        row.append(cell, ...values.reverse().map((value) => make("td", value)));
      }
      const more = path.hidden
        ? [make("p", `Features not shown, because they differ less along the longest step: ${path.hidden}.`, "note")]
        : [];
      return [table, ...more];
    };
    const choosePerson = (button, scroll) => {
      for (const row of body.rows) row.classList.remove("chosen");
      for (const one of body.querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
      button.closest("tr").classList.add("chosen");
      button.setAttribute("aria-current", "true");
      const path = data.people[Number(button.dataset.person)];
      show("why-title", `Explanation of ${button.textContent}`);
      show("probability", path.probability);
      show("rival", `“${path.rival}”`);
      show("path-summary", path.summary);
      $("decides").hidden = !path.terms.length;
      const shares = path.terms.map(([, share]) => share);
      const [low, high] = [Math.min(-1e-9, ...shares), Math.max(1e-9, ...shares)];
      const rows = path.terms.map((term) => termRow(term, low, high));
      rows.at(-1)?.classList.replace(rows.at(-1).className, "sum");
      $("terms").replaceChildren(...rows);
      const chain = [];
      path.nodes.forEach((node, k) => {
        chain.push(nodeItem(node));
        if (k < path.steps.length) chain.push(stepItem(path.steps[k]));
      });
      $("chain").replaceChildren(...chain);
      $("features").replaceChildren(...featureTable(path));
      if (scroll) $("why").scrollIntoView({ block: "nearest", behavior: reduced ? "auto" : "smooth" });
    };
    body.addEventListener("click", (event) => {
      const button = event.target.closest("tr")?.querySelector("button");
      if (button) choosePerson(button, true);
    });
    body.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const row = event.target.closest("tr");
      const next = step && body.rows[row.sectionRowIndex + step];
      if (!next) return;
      event.preventDefault();
      next.querySelector("button").focus();
    });

    $("theta").addEventListener("input", (event) => choose(Number(event.target.value)));
    const setRatio = (ratio) => {
      state.ratio = ratio;
      choose(cheapest());
    };
    $("cost").addEventListener("input", (event) => {
      const ratio = Number((10 ** Number(event.target.value)).toPrecision(2));
      $("ratio").value = String(ratio);
      setRatio(ratio);
    });
    $("ratio").addEventListener("input", (event) => {
      const ratio = Number(event.target.value);
      if (ratio > 0 && Number.isFinite(ratio)) setRatio(ratio);
    });
    $("use-best").addEventListener("click", () => choose(cheapest()));
    $("use-exact").addEventListener("click", () => choose(nearest(1 / (1 + state.ratio))));
    const first = body.querySelector("button");
    if (first) choosePerson(first, false);
  };

  // With more than two classes, another one may be chosen: its sections wait in a template.
  const container = $("view");
  const views = new Map([[page.open, container.cloneNode(true)]]);
  for (const one of document.querySelectorAll("template[data-view]")) views.set(Number(one.dataset.view), one.content);
  $("class")?.addEventListener("change", (event) => {
    const number = Number(event.target.value);
    container.replaceChildren(...views.get(number).cloneNode(true).childNodes);
    look(page.views[number]);
  });
  look(page.views[page.open]);
})();
