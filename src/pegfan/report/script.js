// The page draws itself from the JSON beside this script. Everything from data goes in as text, never as markup.

const content = JSON.parse(document.getElementById("content").textContent);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// ------------------------------------------------------------------- making elements

/** An element with attributes (class, aria-label, ...) and children: elements, or strings that become text. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return dress(made, attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return dress(made, attributes, children);
}

function dress(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/**
 * A name from data: isolated, so that right-to-left names leave their neighbours in order. Its words and numbers stay
 * in one piece, unless one alone is too long for a line.
 */
const name = (words) =>
  el("bdi", { dir: "auto" }, words.split(/(\s+)/).map((word) => (word.trim() && word.length <= 24 ? el("span", { class: "word" }, word) : word)));

/** The colour of a class; grey where there are more classes than colours, a ring for things, which have none. */
const hue = (k) => (k === -1 ? "hue-none" : `hue-${content.colours[k] >= 0 ? content.colours[k] : "other"}`);
const swatch = (k) => el("span", { class: `swatch ${hue(k)}`, "aria-hidden": "true" });
/** A swatch and a name, in one piece unless the name is long. */
const labelled = (k, words) => el("span", { class: words.length <= 24 ? "class word" : "class" }, swatch(k), name(words));
const className = (k) => labelled(k, k === -1 ? "not predicted" : content.classes[k]);

/** Sets a length from data through the style object: the page's policy allows no style attributes. */
function placed(element, properties) {
  for (const [property, value] of Object.entries(properties)) element.style.setProperty(property, value);
  return element;
}

/** A wide thing that scrolls inside itself, reachable by keyboard. */
const scrolling = (label, child, more = "") =>
  el("div", { class: `scroll ${more}`, tabindex: "0", role: "region", "aria-label": label }, child);

const absent = (sentence) => el("p", { class: "absent" }, sentence);
const paragraph = (sentence) => (sentence ? el("p", {}, sentence) : null);
const note = (...parts) => el("p", { class: "note" }, ...parts);

// ----------------------------------------------------------------------------- numbers

const known = (value) => value !== null && value !== undefined;
const whole = (value) => (known(value) ? value.toLocaleString("en-GB") : "–");
/** With a true minus, and no minus before a zero. */
const fixed = (value, digits) => (known(value) ? value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−") : "–");
const percent = (value, digits = 1) => fixed(known(value) ? 100 * value : value, digits);
/** A number of any size in four digits, large ones to the last. */
const amount = (value) => (!known(value) ? "–" : (Math.abs(value) >= 1e3 ? whole(Math.round(value)) : String(Number(value.toPrecision(4)))).replace(/^-/, "−"));
/** A value of the metric, in per cent unless it is a loss. */
const measured = (value) => (content.in_units ? amount(value) : content.percent === false ? fixed(value, 3) : percent(value));
const score = (value) => (known(value) ? `${measured(value)}${content.percent === false ? "" : "%"}` : "–");
const plural = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;

// --------------------------------------------------------------------------------- tip

const tip = {
  box: document.getElementById("tip"),
  of: null,
  show(x, y, ...lines) {
    this.box.replaceChildren(...lines);
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? Math.max(4, x - 14 - width) : x + 14;
    const top = y + 14 + height > innerHeight ? Math.max(4, y - 14 - height) : y + 14;
    placed(this.box, { left: `${left}px`, top: `${top}px` });
  },
  /** Shows itself beside an element, wherever that is. */
  follow() {
    const { right, bottom } = this.of.getBoundingClientRect();
    this.show(right, bottom, ...this.box.childNodes);
  },
  hide() {
    this.box.hidden = true;
    this.of = null;
  },
};

// ------------------------------------------------------------------------------ tables

/**
 * A table. Columns have a title, a cell (element or string), and for sortable tables a value to sort by.
 */
function table(columns, rows, { label, sortable = false, chosen = () => false } = {}) {
  // On a phone rows are grids, and without their roles they would no longer be rows of a table to everybody.
  const body = el("tbody", { role: "rowgroup" });
  const look = (column) => [column.number && "number", column.class].filter(Boolean).join(" ") || null;
  const heads = columns.map((column) => {
    const head = el("th", { scope: "col", role: "columnheader", class: look(column) });
    if (!sortable || !column.value) {
      head.append(column.title);
      return head;
    }
    const button = el("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending" || (!head.hasAttribute("aria-sort") && column.number);
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      fill(sorted(rows, column.value, descending));
    });
    head.append(button);
    return head;
  });
  const fill = (ordered) => {
    body.replaceChildren(
      ...ordered.map((row) =>
        el(
          "tr",
          { class: chosen(row) && "chosen", role: "row" },
          columns.map((column) =>
            el(column.head ? "th" : "td", { class: look(column), scope: column.head && "row", role: column.head ? "rowheader" : "cell" }, column.cell(row)),
          ),
        ),
      ),
    );
  };
  fill(rows);
  const made = el("table", { class: "table", role: "table" }, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)), body);
  const beside = columns.filter((column) => !column.class?.includes("line")).length;
  return scrolling(label, placed(made, { "--columns": beside }), rows.length > 40 ? "tall" : "");
}

/** Rows by a value; what is missing goes last whatever the direction. */
function sorted(rows, value, descending) {
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  return [...rows].sort((first, second) => {
    const [a, b] = [value(first), value(second)];
    if (!known(a) || !known(b)) return Number(!known(a)) - Number(!known(b));
    return descending ? compare(b, a) : compare(a, b);
  });
}

const meter = (share, kind = "") =>
  el("span", { class: `meter ${kind}`, "aria-hidden": "true" }, placed(el("i"), { width: `${100 * Math.min(1, Math.max(0, share ?? 0))}%` }));

/** A matrix over classes, darker where the share (0 to 1) is larger. */
function matrix({ classes, extra, cells, label, caption }) {
  const short = !extra && classes.every((k) => content.classes[k].length <= 3);
  const head = (words) => el("th", { scope: "col", class: short ? "short" : null }, el("span", {}, words));
  const rows = classes.map((a, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", title: content.classes[a] }, className(a)),
      cells(i).map(({ words, share, right, title }) =>
        placed(
          el("td", { class: [!share && "none", right && "right"].filter(Boolean).join(" ") || null, title }, words),
          { "--share": Math.max(0, Math.min(1, share ?? 0)).toFixed(3) },
        ),
      ),
    ),
  );
  const made = el(
    "table",
    { class: `matrix ${classes.length > 9 ? "many" : ""}` },
    el("thead", {}, el("tr", {}, el("td", { class: "corner" }), classes.map((k) => head(name(content.classes[k]))), extra ? head(extra) : null)),
    el("tbody", {}, rows),
  );
  return el("figure", { class: "beside" }, scrolling(label, made), el("figcaption", { class: "note" }, caption));
}

// ---------------------------------------------------------------------------- sections

const draw = {};

draw.warnings = (section) =>
  el("ul", { class: "warnings" }, section.rows.map((row) => el("li", {}, row.kind ? el("b", {}, row.kind) : null, row.text)));

const axisName = () => el("span", { class: "axis-name" }, `${content.metric}${content.percent === false ? "" : ", %"} →`);

draw.score = (section) => {
  const ticks = [0, 25, 50, 75, 100];
  const top = section.top ?? 1;
  const within = (value) => Math.max(0, Math.min(1, value / top));
  const at = (value) => `${100 * within(value)}%`;
  const rows = section.bars.flatMap((bar) => {
    const kind = bar.kind === "model" ? "model" : "floor";
    const marks = ticks.map((tick) => placed(el("span", { class: "grid" }), { left: `${tick}%` }));
    if (bar.line) {
      const [low, high] = bar.line;
      marks.push(placed(el("span", { class: "line" }), { left: at(low), width: `${100 * (within(high) - within(low))}%` }));
    }
    bar.values.forEach((value, i) => marks.push(placed(el("span", { class: "small" }), { left: at(value), top: `${[18, 82][i % 2]}%` })));
    marks.push(placed(el("span", { class: "dot" }), { left: at(bar.mean) }));
    const several = known(bar.std) && bar.std > 0 ? ` ± ${measured(bar.std)}` : "";
    const spread = bar.interval ? ` (${measured(bar.interval[0])} to ${measured(bar.interval[1])})` : several;
    return [
      el("span", { class: `name ${kind}` }, bar.name),
      el("span", { class: `value ${kind}` }, score(bar.mean), el("small", {}, spread)),
      el("span", { class: `scale ${kind}`, role: "img", "aria-label": `${bar.name}: ${score(bar.mean)}${spread}` }, marks),
    ];
  });
  const axis = el("span", { class: "axis", "aria-hidden": "true" }, ticks.map((tick) => placed(el("span", {}, section.top ? (content.in_units ? amount((tick * top) / 100) : ((tick * top) / 100).toFixed(2)) : String(tick)), { left: `${tick}%` })));
  return [
    paragraph(section.words),
    el("div", { class: "dots" }, rows, axis, axisName()),
    known(section.validation) ? note(`On validation nodes, by which the choice was made, the ${section.metric} is ${score(section.validation)}. The test nodes are the ones to believe.`) : null,
  ];
};

/** Models on one scale: the mean, the splits, and the interval of the difference, drawn from the best one's mean. */
draw.against = (section) => {
  const [low, high] = section.scale;
  const at = (value) => `${(100 * (value - low)) / (high - low || 1)}%`;
  const ticks = [0, 1, 2, 3, 4].map((k) => low + (k * (high - low)) / 4);
  const best = section.rows.find((row) => row.kind === "best");
  const notes = { best: "best", even: "means nothing", behind: "" };
  const points = (value) => `${value < 0 ? "−" : "+"}${measured(Math.abs(value))}`;
  const range = (row) => (row.interval ? `${points(row.interval[0])} to ${points(row.interval[1])}` : "–");
  const drawn = section.rows.filter((row) => known(row.mean)).flatMap((row) => {
    const marks = ticks.map((tick) => placed(el("span", { class: "grid" }), { left: at(tick) }));
    marks.push(placed(el("span", { class: "grid leader" }), { left: at(best.mean) }));
    if (row.line.length) marks.push(placed(el("span", { class: "line" }), { left: at(row.line[0]), width: `${(100 * (row.line[1] - row.line[0])) / (high - low || 1)}%` }));
    if (row.values.length > 1) row.values.forEach((value, i) => marks.push(placed(el("span", { class: "small" }), { left: at(value), top: `${[24, 76][i % 2]}%` })));
    marks.push(placed(el("span", { class: "dot" }), { left: at(row.mean) }));
    const spread = row.values.length > 1 ? ` ± ${measured(row.std)}` : "";
    const look = { best: "model", even: "floor", behind: "behind" }[row.kind];
    return [
      el("span", { class: `name ${look}` }, name(row.name)),
      el("span", { class: `value ${look}` }, score(row.mean), el("small", {}, spread)),
      el("span", { class: `scale ${look}`, role: "img", "aria-label": `${row.name}: ${score(row.mean)}${spread}${row.interval ? `, difference ${range(row)}` : ""}` }, marks),
    ];
  });
  const axis = el("span", { class: "axis", "aria-hidden": "true" }, ticks.map((tick) => placed(el("span", {}, measured(tick)), { left: at(tick) })));
  const any = (key) => section.rows.some((row) => known(row[key]));
  const columns = [
    { title: "Model", head: true, class: "line", cell: (row) => name(row.name), value: (row) => row.name },
    { title: `Test ${section.metric}`, number: true, cell: (row) => score(row.mean), value: (row) => row.mean },
    any("difference") && { title: "Difference", number: true, cell: (row) => (known(row.difference) ? points(row.difference) : "–"), value: (row) => row.difference },
    any("interval") && { title: "95% interval", number: true, cell: range },
    { title: "Note", class: "settings line", cell: (row) => row.reason || notes[row.kind] },
    any("seconds") && { title: "Seconds", number: true, cell: (row) => fixed(row.seconds, 2), value: (row) => row.seconds },
    any("search_seconds") && { title: "Search", number: true, cell: (row) => fixed(row.search_seconds, 1), value: (row) => row.search_seconds },
    any("memory") && { title: "MB", number: true, cell: (row) => (known(row.memory) ? whole(Math.round(row.memory / 2 ** 20)) : "–"), value: (row) => row.memory },
    any("validation") && { title: "Validation", number: true, cell: (row) => score(row.validation), value: (row) => row.validation },
    any("how") && { title: "Settings", class: "settings line", cell: (row) => row.how ?? "" },
  ].filter(Boolean);
  return [
    paragraph(section.words),
    drawn.length ? el("div", { class: "dots rivals" }, drawn, axis, axisName()) : null,
    drawn.length > 3 ? note("A large dot is the mean over splits, small dots are single splits. A line is the 95% interval of the difference to the best, drawn from the best one's mean: where it crosses the upright line, the difference means nothing, and the model is grey. Intervals are for one pair of models each, and corrected for splits that share nodes (Nadeau and Bengio, 2003).") : null,
    table(columns, section.rows, { label: "Models against each other", sortable: true, chosen: (row) => row.kind === "best" }),
    section.budget ? note(section.budget) : null,
  ];
};

draw.data = (section) => {
  const bars = [];
  const most = Math.max(1, ...section.class_counts.map((bar) => bar.count));
  for (const bar of section.class_counts) {
    const own = known(bar.class);
    bars.push(
      el("span", { class: "name" }, own ? name(content.classes[bar.class]) : plural(bar.classes, "other class", "other classes")),
      el("span", { class: "track" }, placed(el("span", { class: `fill ${hue(bar.class)}` }), { width: `${(100 * bar.count) / Math.max(most, own ? 1 : bar.count)}%` })),
      el("span", { class: "value" }, whole(bar.count)),
    );
  }
  const measures = section.homophily.length
    ? el("dl", { class: "facts" }, section.homophily.flatMap(({ name: what, value }) => [el("dt", {}, what), el("dd", {}, fixed(value, 3))]))
    : null;
  return [
    paragraph(section.words),
    el(
      "div",
      { class: "columns" },
      el("div", {}, el("h3", {}, "Facts"), el("dl", { class: "facts" }, section.facts.flatMap((fact) => [el("dt", {}, fact.name), el("dd", {}, whole(fact.value))]))),
      measures ? el("div", {}, el("h3", {}, "How labels lie on links"), measures) : null,
    ),
    bars.length ? [el("h3", {}, "Labelled nodes in each class"), el("div", { class: "bars" }, bars)] : null,
    ...similarity(section.ccns),
    section.report ? el("details", {}, el("summary", {}, "What the reader of the files made of them"), el("pre", {}, section.report)) : null,
  ];
};

/** CCNS: whether nodes of two classes have neighbours of the same classes. */
function similarity(ccns) {
  if (!ccns || ccns.values.length < 2) return [];
  const values = ccns.values.flat().filter(known);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const shade = (value) => (known(value) ? 0.06 + (0.94 * (value - low)) / Math.max(high - low, 0.05) : 0);
  const left = ccns.left_out ? ` The ${ccns.classes.length} largest classes are shown; ${plural(ccns.left_out, "is", "are")} left out.` : "";
  return [
    el("h3", {}, "Do classes have similar neighbourhoods?"),
    matrix({
      classes: ccns.classes,
      label: "Cross-class neighbourhood similarity",
      caption: `Cross-class neighbourhood similarity (CCNS), from 0 to 1. Where the diagonal is darkest, the neighbours of a node tell its class, be they of the same class or not. Shades run from the smallest value here to the largest.${left}`,
      cells: (i) => ccns.values[i].map((value) => ({ words: known(value) ? value.toFixed(2).replace(/^0/, "") : "–", share: shade(value) })),
    }),
  ];
}

draw.choice = (section) => {
  const lowest = Math.min(...section.rows.map((row) => row.val_metric).filter(known));
  const highest = Math.max(...section.rows.map((row) => row.val_metric).filter(known));
  // Bars start a little below the worst candidate: between good candidates the differences are small.
  const foot = Math.max(0, lowest - 0.25 * (highest - lowest) - 0.01);
  const any = (key) => section.rows.some((row) => known(row[key]) && row[key] !== "");
  const boosted = section.rows.filter((row) => row.boosted).length;
  const rounds = !boosted ? "Epochs" : boosted === section.rows.length ? "Rounds" : "Epochs or rounds";
  const columns = [
    { title: "Candidate", head: true, class: "line", cell: (row) => [name(row.name), row.chosen ? [" ", el("span", { class: "tag" }, known(row.weight) ? `in the model: ${percent(row.weight, 0)}%` : "chosen")] : null, row.why ? [" ", el("small", {}, row.why)] : null].flat(), value: (row) => row.name },
    { title: `Validation ${section.metric}`, number: true, cell: (row) => [score(row.val_metric), meter((row.val_metric - foot) / (highest - foot || 1))], value: (row) => row.val_metric },
    any("val_loss") && { title: "Loss", number: true, cell: (row) => fixed(row.val_loss, 3), value: (row) => row.val_loss },
    any("epochs") && { title: rounds, number: true, cell: (row) => whole(row.epochs), value: (row) => row.epochs },
    any("seconds") && { title: "Seconds", number: true, cell: (row) => fixed(row.seconds, 1), value: (row) => row.seconds },
    section.rows.some((row) => row.settings.length) && { title: "What is unusual in it", class: "settings line", cell: (row) => row.settings.flatMap((setting, i) => [i ? " · " : "", el("span", {}, setting)]) },
  ].filter(Boolean);
  const bars = section.families.flatMap((family) => [
    el("span", { class: "name" }, family.name),
    el("span", { class: "track" }, placed(el("span", { class: "fill hue-accent" }), { width: `${100 * family.weight}%` })),
    el("span", { class: "value" }, `${percent(family.weight, 0)}%`),
  ]);
  return [
    paragraph(section.words),
    bars.length ? [el("h3", {}, "What the model is made of"), el("div", { class: "bars" }, bars)] : null,
    table(columns, section.rows, { label: "Candidates", sortable: true, chosen: (row) => row.chosen }),
    section.usual.length ? note(`Where nothing else is said: ${section.usual.join(" · ")}.`) : null,
  ];
};

draw.confusion = (section) => {
  const left = section.left_out ? ` The ${section.classes.length} largest of ${content.classes.length} classes are shown.` : "";
  return [
    paragraph(section.words),
    matrix({
      classes: section.classes,
      extra: section.left_out ? "other classes" : null,
      label: "Confusion matrix",
      caption: `Rows: the true class. Columns: the predicted one. Numbers are nodes; shades are shares of the row.${left}`,
      cells: (i) => {
        const total = section.counts[i].reduce((sum, value) => sum + value, 0);
        return section.counts[i].map((value, j) => ({ words: value ? whole(value) : "·", share: total ? value / total : 0, right: i === j, title: `${percent(total ? value / total : 0)}% of the row` }));
      },
    }),
  ];
};

/** The reliability diagram: what was said against how often it came true; the larger a dot, the more nodes. */
draw.probabilities = (section) => {
  const kinds = section.used ? ["before", "after"] : ["after"];
  const most = Math.max(...section.after.map((row) => row.nodes));
  // Of a rare class all probabilities are small: the picture ends where they do.
  const far = Math.max(section.threshold ?? 0, ...kinds.flatMap((kind) => section[kind].flatMap((row) => [row.said, row.true])));
  const end = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8].find((value) => value >= far) ?? 1;
  const axis = (words) => ({ name: words, low: 0, high: end, show: (value) => amount(100 * value) });
  const what = known(section.class) ? `“${content.classes[section.class]}”` : "the likeliest class";
  const { figure } = chart({
    kind: "reliability",
    label: `Reliability diagram: ${section.after.map((row) => `${percent(row.said, 0)}% said, ${percent(row.true, 0)}% true`).join("; ")}`,
    x: axis("probability that was said, %"),
    y: axis(`how often it was ${what}, % of test nodes`),
    paths: (x, y) => [
      svg("path", { class: "best", d: "M0 100L100 0" }),
      known(section.threshold) ? svg("path", { class: "cross", d: `M${x(section.threshold)} 0V100` }) : null,
      kinds.map((kind) => svg("path", { class: kind === "after" ? "val" : "train", d: section[kind].map((row, i) => `${i ? "L" : "M"}${x(row.said)} ${y(row.true)}`).join("") })),
    ],
    over: (x, y) =>
      section.after.map((row) => {
        const size = `${(0.35 + 0.65 * Math.sqrt(row.nodes / most)).toFixed(2)}rem`;
        const dot = placed(el("span", { class: "bin" }), { left: `${x(row.said)}%`, top: `${y(row.true)}%`, width: size, height: size });
        dot.addEventListener("pointermove", (event) => tip.show(event.clientX, event.clientY, el("b", {}, `${percent(row.said)}% said`), el("div", {}, `${percent(row.true)}% true, ${plural(row.nodes, "node", "nodes")}`)));
        dot.addEventListener("pointerleave", () => tip.hide());
        return dot;
      }),
  });
  return [
    paragraph(section.words),
    paragraph(section.decision),
    el("div", { class: "legend" }, section.used ? el("span", { class: "key train" }, "before calibration") : null, el("span", { class: "key" }, section.used ? "as predicted" : "as the model says")),
    figure,
    note("On the diagonal, probabilities can be taken at their word. Larger dots are more nodes.", known(section.threshold) ? " The upright line is the threshold." : ""),
  ];
};

draw.per_class = (section) => {
  const share = (key, title) => ({ title, number: true, cell: (row) => [percent(row[key]), meter(row[key], hue(row.class))], value: (row) => row[key] });
  const columns = [
    { title: "Class", head: true, cell: classCell, value: (row) => row.name },
    { title: "Test nodes", number: true, cell: (row) => whole(row.support), value: (row) => row.support },
    share("precision", "Precision, %"),
    share("recall", "Recall, %"),
  ];
  return [
    el("p", {}, "Precision: how many of the nodes put into a class belong there. Recall: how many of its nodes were found."),
    table(columns, section.rows, { label: "Precision and recall of each class", sortable: true }),
    section.left_out ? note(`${plural(section.left_out, "smaller class is", "smaller classes are")} left out.`) : null,
  ];
};

// ------------------------------------------------------------------------------ curves

/** Round numbers between two ends, about four of them. */
function ticksOf(low, high) {
  const rough = (high - low || 1) / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 2.5, 5, 10].find((k) => k * unit >= 0.999 * rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/**
 * A picture with two axes; each has a name, two ends, and a way to show its numbers. `paths` are drawn in units of the
 * picture, 0 to 100, which stretches with the page; words, and what `over` puts over it, do not.
 */
function chart({ title, label, kind = "", x, y, paths, over = () => [] }) {
  const along = ({ low, high }) => (value) => Number(((100 * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1)).toFixed(2));
  const [across, up] = [along(x), (value) => Number((100 - along(y)(value)).toFixed(2))];
  const [columns, rows] = [x, y].map((axis) => ticksOf(axis.low, axis.high).map((value) => [value, axis.show(value)]));
  const grid = [...columns.map(([value]) => `M${across(value)} 0V100`), ...rows.map(([value]) => `M0 ${up(value)}H100`)].join("");
  const box = el(
    "div",
    { class: "plot", role: "img", "aria-label": `${label} Up: ${y.name}, ${y.show(y.low)} to ${y.show(y.high)}; across: ${x.name}, ${x.show(x.low)} to ${x.show(x.high)}.` },
    svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { class: "grid", d: grid }), paths(across, up)),
    rows.map(([value, words]) => placed(el("span", { class: "y" }, words), { top: `${up(value)}%` })),
    columns.map(([value, words]) => placed(el("span", { class: `x ${across(value) > 94 ? "last" : ""}` }, words), { left: `${across(value)}%` })),
    over(across, up),
  );
  placed(box, { "--left": `${Math.max(1, ...rows.map(([, words]) => words.length))}ch` });
  const figure = el("figure", { class: `chart ${kind}` }, title ? el("figcaption", {}, title) : null, el("p", { class: "up" }, "↑ ", y.name), box, el("p", { class: "across" }, x.name, " →"));
  return { figure, box, across, up };
}

draw.curves = (section) => [
  el("div", { class: "legend" }, el("span", { class: "key train" }, "training"), el("span", { class: "key" }, "validation")),
  section.members.map((member) => [
    section.members.length > 1 || member.name ? el("h3", {}, name(member.name)) : null,
    el(
      "div",
      { class: "curves" },
      learned(member, "loss", { train: member.train_loss, val: member.val_loss }, (value) => value.toPrecision(3), amount),
      learned(member, `validation ${section.metric}${content.percent === false ? "" : ", %"}`, { val: member.val_metric }, measured, (value) => amount(content.percent === false ? value : 100 * value)),
    ),
  ]),
];

/** Lines over the epochs of a network, or the rounds of boosted trees. */
function learned(member, title, lines, format, show) {
  const values = Object.values(lines).flat().filter(known);
  if (values.length < 2) return null;
  const [one, many] = member.boosted ? ["round", "rounds"] : ["epoch", "epochs"];
  // One wild first epoch must not flatten the rest.
  const ordered = [...values].sort((a, b) => a - b);
  const high = Math.min(ordered.at(-1), 2 * ordered[Math.floor(0.97 * (ordered.length - 1))] || ordered.at(-1));
  const last = Math.max(1, member.epochs - 1);
  const best = known(member.best) ? Math.min(member.best, member.epochs - 1) : null;
  const cross = svg("path", { class: "cross", visibility: "hidden" });
  const { figure, box, across } = chart({
    kind: "marked",
    label: `${title} over ${member.epochs} ${many}, from ${format(ordered[0])} to ${format(high)}.${known(best) ? ` Best ${one}: ${member.best}.` : ""}`,
    x: { name: many, low: 0, high: last, show: whole },
    y: { name: title, low: ordered[0], high, show },
    paths: (x, y) => [
      known(best) ? svg("path", { class: "best", d: `M${x(best)} 0V100` }) : null,
      Object.entries(lines).map(([kind, line]) =>
        svg("path", { class: kind, d: line.reduce((steps, value, i) => (known(value) ? `${steps}${steps && known(line[i - 1]) ? "L" : "M"}${x(member.at[i])} ${y(value)}` : steps), "") }),
      ),
      cross,
    ],
    over: (x) => (known(best) ? [placed(el("span", { class: `mark ${best > 0.7 * last ? "late" : best < 0.3 * last ? "early" : ""}` }, `${one} ${whole(member.best)} is kept`), { left: `${x(best)}%` })] : []),
  });
  box.addEventListener("pointermove", (event) => {
    const { left, width } = box.getBoundingClientRect();
    const epoch = Math.round(((event.clientX - left) / width) * last);
    const i = member.at.reduce((nearest, at, k) => (Math.abs(at - epoch) < Math.abs(member.at[nearest] - epoch) ? k : nearest), 0);
    cross.setAttribute("d", `M${across(member.at[i])} 0V100`);
    cross.setAttribute("visibility", "visible");
    const labels = { train: "training", val: "validation" };
    tip.show(event.clientX, event.clientY, el("b", {}, `${one[0].toUpperCase()}${one.slice(1)} ${member.at[i]}`), ...Object.entries(lines).filter(([, line]) => known(line[i])).map(([kind, line]) => el("div", {}, `${labels[kind]} ${format(line[i])}`)));
  });
  box.addEventListener("pointerleave", () => {
    cross.setAttribute("visibility", "hidden");
    tip.hide();
  });
  return figure;
}

// --------------------------------------------------------------------------- attention

draw.attention = (section) => {
  const place = el("div");
  const show = (member) => {
    const total = member.channels.reduce((sum, channel) => sum + channel.weight, 0) || 1;
    const even = 1 / member.channels.length;
    const top = Math.max(even, ...member.channels.map((channel) => channel.weight / total));
    const groups = { features: "The features themselves", hops: "Hops: averages over neighbours", scales: "Scales: details of the tree, coarse to fine", other: "Other channels" };
    place.replaceChildren(
      paragraph(member.words),
      ...Object.entries(groups).flatMap(([group, title]) => {
        const channels = member.channels.filter((channel) => channel.group === group);
        if (!channels.length) return [];
        const share = channels.reduce((sum, channel) => sum + channel.weight, 0) / total;
        const bars = channels.flatMap((channel) => [
          el("span", { class: "name", title: channel.what || null }, name(channel.name), member.channels.length <= 12 && channel.what ? el("small", {}, channel.what) : null),
          el(
            "span",
            { class: "track thin" },
            placed(el("span", { class: "fill hue-accent" }), { width: `${(100 * channel.weight) / total / top}%` }),
            placed(el("span", { class: "even" }), { left: `${(100 * even) / top}%` }),
          ),
          el("span", { class: "value" }, fixed(channel.weight / total, 3)),
        ]);
        return [el("h3", {}, `${title} – ${percent(share, 0)}%`), el("div", { class: "bars channels" }, bars)];
      }),
      note(`The dashed line is an even share. ${member.boosted ? "A weight is the channel’s share in what the questions of the boosted trees gained" : "A weight scales what a channel contributes"}; it is a hint at what matters, not a proof.`),
    );
  };
  show(section.members[0]);
  if (section.members.length === 1) return place;
  const choose = el("select", { "aria-label": "Member of the mean" }, section.members.map((member, i) => el("option", { value: i }, member.name)));
  choose.addEventListener("change", () => show(section.members[Number(choose.value)]));
  return [el("div", { class: "controls screen" }, el("label", {}, "Member", choose)), place];
};

// -------------------------------------------------------------------------------- tree

draw.tree = (section) => {
  const rows = section.levels.flatMap((level) => [
    el("span", {}, `level ${level.level}`),
    icicle(section, level),
    el("span", { class: "value" }, plural(level.clusters, "cluster", "clusters")),
  ]);
  const made = section.method ? `, made by “${section.method}”` : "";
  return [
    paragraph(
      `The tree has ${section.K} levels, and a cluster has at most ${plural(section.h, "child", "children")}${made}. ` +
        `Each row is a level, each box is a cluster, as wide as its number of nodes and coloured by the ${content.numeric ? "numbers" : "classes"} predicted in it. ` +
        (section.words ?? ""),
    ),
    el("div", { class: "icicle", role: "img", "aria-label": `The tree, level by level, coloured by predicted ${content.numeric ? "number" : "class"}; the table below says the same in numbers.` }, rows),
    el("div", { class: "key-line" }, classKey()),
    el(
      "details",
      {},
      el("summary", {}, "The levels as a table"),
      table(
        [
          { title: "Level", head: true, cell: (level) => String(level.level) },
          { title: "Clusters", number: true, cell: (level) => whole(level.clusters) },
          { title: "Nodes per cluster", number: true, cell: (level) => fixed(section.n / level.clusters, 1) },
          { title: content.numeric ? "Variance between clusters, %" : "Nodes of their cluster’s main class, %", number: true, cell: (level) => percent(level.purity) },
        ],
        section.levels,
        { label: "Levels of the tree" },
      ),
    ),
  ];
};

/** One level: all boxes of one colour are one path, so that even large trees stay light. */
function icicle(section, level) {
  const height = 100;
  const paths = new Map();
  for (const [start, width, , , ...mix] of level.boxes) {
    const gap = level.boxes.length > 1 ? Math.min(0.15 * width, section.n / 700) : 0;
    let top = height;
    for (let i = 0; i < mix.length; i += 2) {
      const tall = (height * mix[i + 1]) / width;
      const shade = hue(mix[i]);
      paths.set(shade, `${paths.get(shade) ?? ""}M${start} ${(top - tall).toFixed(1)}h${+(width - gap).toFixed(2)}v${tall.toFixed(1)}h-${+(width - gap).toFixed(2)}z`);
      top -= tall;
    }
  }
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${section.n} ${height}`, preserveAspectRatio: "none" },
    [...paths].map(([shade, d]) => svg("path", { class: shade, d })),
  );
  drawing.addEventListener("pointermove", (event) => {
    const { left, width } = drawing.getBoundingClientRect();
    const leaf = ((event.clientX - left) / width) * section.n;
    const box = level.boxes.findLast(([start]) => start <= leaf);
    if (!box) return tip.hide();
    const [, nodes, slot, clusters, ...mix] = box;
    const shares = mix.filter((_, i) => i % 2 === 0).map((k, i) => [k, mix[2 * i + 1]]).sort((a, b) => b[1] - a[1]);
    const lines = shares.slice(0, 6).map(([k, count]) => el("div", {}, className(k), ` ${percent(count / nodes, 0)}%`));
    const title = level.level === section.K ? plural(nodes, "node", "nodes") : clusters > 1 ? `${clusters} clusters, ${plural(nodes, "node", "nodes")}` : `Cluster ${slot + 1} of ${level.clusters}, ${plural(nodes, "node", "nodes")}`;
    tip.show(event.clientX, event.clientY, el("b", {}, title), ...lines);
  });
  drawing.addEventListener("pointerleave", () => tip.hide());
  return drawing;
}

/** The entries of a key: classes and their colours. */
function classKey() {
  const own = content.classes.map((_, k) => k).filter((k) => content.colours[k] >= 0);
  const rest = content.colours.filter((shade) => shade === -1).length;
  const others = rest ? [el("span", {}, el("span", { class: "swatch hue-other" }), plural(rest, "other class", "other classes"))] : [];
  return [...own.map(className), ...others];
}

// ------------------------------------------------------------------------------- graph

/** Colours of the style sheet as the canvas needs them, for the theme of the moment. */
function palette() {
  const probe = document.body.appendChild(el("span", { hidden: true }));
  const read = (variable) => {
    probe.style.color = `var(--${variable})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
    return [r, g, b];
  };
  const names = ["ink", "soft", "faint", "rule", "panel", "paper", "accent", "high", "low", "other"];
  const found = Object.fromEntries(names.map((variable) => [variable, read(variable)]));
  found.hues = Array.from({ length: 10 }, (_, i) => read(`c${i}`));
  probe.remove();
  return found;
}

const rgb = ([r, g, b], alpha = 1) => `rgb(${r} ${g} ${b} / ${alpha})`;
const between = (from, to, share) => from.map((part, i) => Math.round(part + (to[i] - part) * share));

class GraphPicture {
  constructor(graph) {
    this.graph = graph;
    this.count = graph.ids.length;
    this.levels = graph.clusters.length;
    this.state = { colour: "predicted", arrange: graph.tree_xy ? "tree" : "links", level: Math.min(2, this.levels || 1), framelet: 0 };
    this.view = { scale: 1, x: 0, y: 0 };
    this.hovered = null;
    this.marked = null;
    this.places = this.target();
    this.neighbours = Array.from({ length: this.count }, () => []);
    for (let e = 0; e < graph.edges.length; e += 2) {
      this.neighbours[graph.edges[e]].push(graph.edges[e + 1]);
      this.neighbours[graph.edges[e + 1]].push(graph.edges[e]);
    }
  }

  target() {
    const flat = this.state.arrange === "tree" ? this.graph.tree_xy : this.graph.link_xy;
    return Float32Array.from(flat, (value) => value / 10000);
  }

  // ---- the parts on the page

  build() {
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "The graph. Arrow keys move the picture, plus and minus zoom, 0 shows all of it." });
    this.key = el("div", { class: "key-line", "aria-live": "polite" });
    const zoom = (factor, words, label) => {
      const button = el("button", { type: "button", "aria-label": label, title: label }, words);
      button.addEventListener("click", () => this.zoom(factor));
      return button;
    };
    const buttons = el("div", { class: "zoom" }, zoom(1.5, "+", "Zoom in"), zoom(1 / 1.5, "−", "Zoom out"), zoom(0, "all", "Show all"));
    const stage = el("div", { class: "stage" }, this.canvas);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(stage);
    return [this.controls(buttons), stage, this.key];
  }

  controls(buttons) {
    const { graph, state } = this;
    const colours = [
      ["predicted", content.numeric ? "predicted fifth" : "predicted class"],
      graph.true.some((k) => k >= 0) && ["true", content.numeric ? "fifth of the true number" : "true class"],
      ["confidence", content.numeric ? "predicted number" : "confidence"],
      this.levels > 1 && ["cluster", "cluster at the level"],
      graph.framelets?.some((level) => level.length) && ["framelet", "a framelet ψ of the level"],
    ].filter(Boolean);
    this.colour = el("select", { id: "colour" }, colours.map(([value, words]) => el("option", { value }, words)));
    this.colour.addEventListener("change", () => this.change({ colour: this.colour.value }));
    const parts = [el("label", {}, "Colour", this.colour)];

    if (graph.tree_xy) {
      this.arrange = el("select", { id: "arrange" }, el("option", { value: "tree" }, "by the tree"), el("option", { value: "links" }, "by links"));
      this.arrange.addEventListener("change", () => this.change({ arrange: this.arrange.value }));
      parts.push(el("label", {}, "Arrange", this.arrange));
    }
    if (this.levels > 1) {
      this.slider = el("input", { id: "level", type: "range", min: 1, max: this.levels, step: 1, value: state.level });
      this.output = el("output", { for: "level" });
      this.slider.addEventListener("input", () => this.walk(Number(this.slider.value)));
      parts.push(el("div", { class: "slider" }, el("span", {}, el("label", { for: "level" }, "Level of the tree:"), " ", this.output), this.slider));
      this.chooser = el("select", { id: "framelet" });
      this.chooser.addEventListener("change", () => this.change({ framelet: Number(this.chooser.value) }));
      this.framelet = el("label", { hidden: true }, "Framelet", this.chooser);
    }
    this.search = el("input", { type: "search", id: "find", placeholder: "id", size: 10, autocomplete: "off" });
    this.search.addEventListener("change", () => this.find(this.search.value));
    parts.push(el("label", {}, "Find a node", this.search), buttons, this.framelet);
    return el("div", { class: "controls" }, parts.filter(Boolean));
  }

  // ---- what the controls do

  /** The slider shows something whatever the colours are: outlines by the tree, else clusters. */
  walk(level) {
    const plain = this.state.colour !== "cluster" && this.state.colour !== "framelet";
    this.change({ level, ...(plain && this.state.arrange === "links" ? { colour: "cluster" } : {}) });
  }

  change(changes) {
    const before = { ...this.state };
    Object.assign(this.state, changes);
    const { state } = this;
    const framelets = this.graph.framelets ?? [];
    if (state.colour === "framelet") {
      // Single nodes have no framelet, and neither have levels where every cluster has one child.
      while (state.level > 1 && !framelets[state.level - 1]?.length) state.level -= 1;
      while (state.level < this.levels - 1 && !framelets[state.level - 1]?.length) state.level += 1;
    }
    if (state.level !== before.level || state.colour !== before.colour) {
      if (!("framelet" in changes)) state.framelet = 0;
      this.offer(framelets[state.level - 1] ?? []);
    }
    this.colour.value = state.colour;
    if (this.slider) this.slider.value = state.level;
    this.explain();
    if (state.arrange !== before.arrange) this.move(this.target());
    else this.paint();
  }

  offer(framelets) {
    if (!this.chooser) return;
    this.chooser.replaceChildren(...framelets.map((framelet, i) => el("option", { value: i }, `(${framelet.cluster.join(", ")}): child ${framelet.children[0]} − child ${framelet.children[1]}, ${plural(framelet.support, "node", "nodes")}`)));
    this.chooser.value = String(this.state.framelet);
    this.framelet.hidden = this.state.colour !== "framelet";
  }

  explain() {
    const { state, graph } = this;
    if (this.output) {
      const clusters = content.tree.levels.find((level) => level.level === state.level)?.clusters;
      this.output.value = `${state.level} of ${this.levels}${clusters ? `, ${plural(clusters, "cluster", "clusters")}` : ""}`;
    }
    if (state.colour === "confidence" && content.numeric) {
      this.key.replaceChildren(el("span", {}, `predicted number: ${graph.range[0]}`, el("span", { class: "ramp confidence" }), graph.range[1]));
    } else if (state.colour === "confidence") {
      this.key.replaceChildren(el("span", {}, `probability of the predicted class: ${Math.round(100 / content.classes.length)}%`, el("span", { class: "ramp confidence" }), "100%"));
    } else if (state.colour === "framelet") {
      const framelet = this.current();
      const peak = Math.max(...framelet.values.map(Math.abs), 0);
      this.key.replaceChildren(
        el("span", {}, `ψ: ${(-peak).toPrecision(2)}`, el("span", { class: "ramp framelet" }), peak.toPrecision(2)),
        el("span", {}, el("span", { class: "ring" }), "zero there"),
        el("span", {}, `It compares two children of cluster (${framelet.cluster.join(", ")}).`),
      );
    } else if (state.colour === "cluster") {
      this.key.replaceChildren(el("span", {}, "One colour per cluster; with more than ten, colours repeat."));
    } else {
      this.key.replaceChildren(...classKey());
      if (state.colour === "predicted" && graph.predicted.some((k) => k < 0)) this.key.append(el("span", {}, el("span", { class: "ring" }), "things, not predicted"));
      if (state.colour === "true" && graph.true.some((k) => k < 0)) this.key.append(el("span", {}, el("span", { class: "ring" }), content.numeric ? "not known" : "no label"));
    }
  }

  current() {
    return this.graph.framelets[this.state.level - 1][this.state.framelet];
  }

  /** Nodes glide to their new places, unless the reader asked for less motion. */
  move(target) {
    cancelAnimationFrame(this.frame);
    if (calm.matches) {
      this.places = target;
      return this.paint();
    }
    const [start, begun] = [this.places, performance.now()];
    const step = (now) => {
      const share = Math.min(1, Math.max(0, (now - begun) / 600));
      const eased = share * share * (3 - 2 * share);
      this.places = share < 1 ? start.map((value, i) => value + (target[i] - value) * eased) : target;
      this.paint();
      if (share < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  /** Shows one node; says so where it is not in the sample. */
  find(id) {
    const i = this.graph.ids.indexOf(id.trim());
    this.marked = i < 0 ? null : i;
    if (i < 0) {
      this.explain();
      if (id.trim()) this.key.prepend(el("span", {}, "No node of this id is in the picture."));
      return this.paint();
    }
    const { R } = this.size;
    this.view.scale = Math.max(this.view.scale, this.count > 120 ? 3 : 1);
    this.view.x = -this.places[2 * i] * R * this.view.scale;
    this.view.y = -this.places[2 * i + 1] * R * this.view.scale;
    this.settle();
    this.explain();
    this.key.prepend(el("span", {}, ...this.about(i)));
    return this.paint();
  }

  /** The facts of a node, for the tip and for screen readers. */
  about(i) {
    const { graph, state } = this;
    const facts = [el("b", {}, name(graph.ids[i]))];
    if (graph.predicted[i] < 0) facts.push(el("span", {}, "a thing that only links name; nothing is predicted for it"));
    else {
      const said = content.numeric ? [amount(graph.values[i])] : [className(graph.predicted[i]), ` with ${(graph.probability[i] / 10).toFixed(1)}%`];
      const fact = content.numeric ? amount(graph.truths[i]) : className(graph.true[i]);
      const truth = graph.true[i] >= 0 ? ["; is ", fact] : [content.numeric ? "; not known" : "; has no label"];
      facts.push(el("span", {}, "predicted ", ...said), el("span", {}, ...truth));
    }
    if (graph.split) facts.push(el("span", {}, ["", "; training node", "; validation node", "; test node"][graph.split[i]]));
    if (this.levels > 1) facts.push(el("span", {}, `; cluster ${graph.clusters[state.level - 1][i] + 1} at level ${state.level}`));
    if (state.colour === "framelet") {
      const framelet = this.current();
      const at = framelet.at.indexOf(i);
      facts.push(el("span", {}, `; ψ = ${at < 0 ? 0 : framelet.values[at]}`));
    }
    const why = reasonsOf(graph.ids[i]);
    return why ? [...facts, why] : facts;
  }

  // ---- pointer and keys

  listen() {
    const { canvas, view } = this;
    const fingers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      moved = 0;
      // A touch that may become a scroll of the page is left to the browser.
      if (event.pointerType === "mouse" || view.scale > 1) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return this.hover(event);
      const next = [event.clientX, event.clientY];
      const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      if (others.length) {
        const distance = ([x, y]) => Math.hypot(x - others[0][0], y - others[0][1]);
        this.zoom(distance(next) / Math.max(1, distance(last)), next);
      } else if (event.pointerType === "mouse" || view.scale > 1) {
        view.x += next[0] - last[0];
        view.y += next[1] - last[1];
        canvas.classList.add("dragging");
        this.settle();
        this.paint();
      }
      moved += Math.hypot(next[0] - last[0], next[1] - last[1]);
      fingers.set(event.pointerId, next);
      return tip.hide();
    });
    const end = (event) => {
      fingers.delete(event.pointerId);
      canvas.classList.remove("dragging");
    };
    canvas.addEventListener("pointerup", (event) => {
      end(event);
      if (moved < 5) this.hover(event);
    });
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.hover(null);
    });
    // The wheel belongs to the page until the picture is clicked.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), [event.clientX, event.clientY]);
    }, { passive: false });
    const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    canvas.addEventListener("keydown", (event) => {
      if (steps[event.key]) {
        view.x += steps[event.key][0];
        view.y += steps[event.key][1];
        this.settle();
        this.paint();
      } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.zoom(0);
      else return;
      event.preventDefault();
    });
  }

  /** Zooms about a point of the window, by default the middle; 0 shows everything. */
  zoom(factor, at) {
    const { view, canvas, size } = this;
    if (factor === 0) Object.assign(view, { scale: 1, x: 0, y: 0 });
    else {
      const box = canvas.getBoundingClientRect();
      const [px, py] = at ? [at[0] - box.left - size.width / 2, at[1] - box.top - size.height / 2] : [0, 0];
      const scale = Math.min(24, Math.max(0.6, view.scale * factor));
      view.x = px - ((px - view.x) * scale) / view.scale;
      view.y = py - ((py - view.y) * scale) / view.scale;
      view.scale = scale;
    }
    this.settle();
    this.paint();
  }

  /** Keeps the picture from being lost outside the stage. */
  settle() {
    const { view, size } = this;
    const limit = size.R * view.scale;
    view.x = Math.max(-1.3 * limit, Math.min(1.3 * limit, view.x));
    view.y = Math.max(-limit, Math.min(limit, view.y));
    this.canvas.classList.toggle("near", view.scale > 1);
  }

  hover(event) {
    let found = null;
    if (event) {
      const box = this.canvas.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      let nearest = 0;
      for (let i = 0; i < this.count; i += 1) {
        const [x, y] = this.at(i);
        const distance = Math.hypot(x - px, y - py) - this.radius(i) - 7;
        if (distance < nearest) [nearest, found] = [distance, i];
      }
    }
    if (found === null) tip.hide();
    else tip.show(event.clientX, event.clientY, ...this.about(found));
    if (found !== this.hovered) {
      this.hovered = found;
      this.paint();
    }
  }

  // ---- drawing

  resize() {
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(width * 0.77, 680));
    const sharp = Math.min(3, devicePixelRatio || 1);
    // The tree fills a wide box, links fill a circle.
    const wide = this.graph.tree_xy ? 1.3 : 1;
    this.size = { width, height, sharp, R: Math.min((width / 2 - 10) / wide, height / 2 - 10) };
    this.canvas.width = Math.round(width * sharp);
    this.canvas.height = Math.round(height * sharp);
    this.canvas.style.setProperty("aspect-ratio", `${width} / ${height}`);
    this.paint();
  }

  at(i) {
    const { size, view } = this;
    const reach = size.R * view.scale;
    return [size.width / 2 + view.x + this.places[2 * i] * reach, size.height / 2 + view.y + this.places[2 * i + 1] * reach];
  }

  /** How large a node is drawn; by the tree, no larger than its place there. */
  radius(i) {
    const { size, view, state, graph } = this;
    if (state.arrange === "tree") return Math.max(1.3, Math.min(14, (graph.room[i] / 10000) * size.R * view.scale * 0.8));
    return Math.max(1.8, Math.min(9, (0.42 * size.R) / Math.sqrt(this.count)) * Math.sqrt(view.scale));
  }

  /** The fill of every node; null draws a ring. */
  fills() {
    const { graph, state, colours } = this;
    const ofClass = (k) => (k < 0 ? null : content.colours[k] < 0 ? colours.other : colours.hues[content.colours[k]]);
    if (state.colour === "predicted") return graph.predicted.map(ofClass);
    if (state.colour === "true") return graph.true.map(ofClass);
    if (state.colour === "confidence") {
      const least = content.numeric ? 0 : 1000 / content.classes.length;
      return graph.probability.map((value, i) => (graph.predicted[i] < 0 ? null : between(colours.faint, colours.accent, Math.max(0, (value - least) / (1000 - least || 1)))));
    }
    if (state.colour === "cluster") {
      const slots = graph.clusters[state.level - 1];
      const rank = new Map([...new Set(slots)].sort((a, b) => a - b).map((slot, i) => [slot, i]));
      return slots.map((slot) => colours.hues[rank.get(slot) % 10]);
    }
    const { at, values } = this.current();
    const peak = Math.max(...values.map(Math.abs)) || 1;
    const fills = new Array(this.count).fill(null);
    at.forEach((i, place) => {
      const share = 0.25 + (0.75 * Math.abs(values[place])) / peak;
      fills[i] = between(colours.faint, values[place] > 0 ? colours.high : colours.low, share);
    });
    return fills;
  }

  paint() {
    if (!this.size) return;
    this.colours ??= palette();
    const { canvas, size, view, state, graph, colours } = this;
    const pen = canvas.getContext("2d");
    pen.setTransform(size.sharp, 0, 0, size.sharp, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    const xy = Array.from({ length: this.count }, (_, i) => this.at(i));
    const reach = size.R * view.scale;

    if (state.arrange === "tree" && this.levels > 1) {
      const outlines = graph.boxes[state.level - 1] ?? [];
      const middle = [size.width / 2 + view.x, size.height / 2 + view.y];
      pen.lineWidth = 1.2;
      pen.fillStyle = rgb(colours.paper);
      pen.strokeStyle = rgb(colours.soft, 0.8);
      for (let c = 0; c < outlines.length; c += 4) {
        const [left, top, right, bottom] = outlines.slice(c, c + 4).map((value, side) => middle[side % 2] + (value / 10000) * reach);
        pen.beginPath();
        pen.roundRect(left, top, right - left, bottom - top, Math.min(6, (right - left) / 4, (bottom - top) / 4));
        pen.fill();
        pen.stroke();
      }
    }

    const strength = state.arrange === "tree" ? 250 : 900;
    pen.strokeStyle = rgb(colours.soft, Math.min(0.4, Math.max(0.045, strength / (graph.edges.length || 1))));
    pen.lineWidth = 0.8;
    pen.beginPath();
    for (let e = 0; e < graph.edges.length; e += 2) {
      pen.moveTo(...xy[graph.edges[e]]);
      pen.lineTo(...xy[graph.edges[e + 1]]);
    }
    pen.stroke();

    const focus = this.hovered ?? this.marked;
    if (focus !== null) {
      pen.strokeStyle = rgb(colours.ink, 0.75);
      pen.lineWidth = 1.2;
      pen.beginPath();
      for (const j of this.neighbours[focus]) {
        pen.moveTo(...xy[focus]);
        pen.lineTo(...xy[j]);
      }
      pen.stroke();
    }

    this.fills().forEach((fill, i) => {
      const radius = this.radius(i);
      pen.beginPath();
      pen.arc(xy[i][0], xy[i][1], fill ? radius : Math.max(1.2, 0.62 * radius), 0, 2 * Math.PI);
      if (fill) {
        pen.fillStyle = rgb(fill);
        pen.fill();
      } else {
        pen.fillStyle = rgb(colours.panel);
        pen.fill();
        pen.lineWidth = 0.8;
        pen.strokeStyle = rgb(colours.soft, 0.55);
        pen.stroke();
      }
    });
    if (focus !== null) {
      pen.beginPath();
      pen.arc(...xy[focus], this.radius(focus) + 3, 0, 2 * Math.PI);
      pen.lineWidth = 2;
      pen.strokeStyle = rgb(colours.ink);
      pen.stroke();
    }
  }

  recolour() {
    this.colours = null;
    this.paint();
  }
}

let picture = null;

draw.graph = (section) => {
  picture = new GraphPicture(section);
  const parts = picture.build();
  const sampled = section.ids.length < section.total;
  const drawn = section.edges.length / 2;
  const pairs = `${drawn < section.links ? `${whole(drawn)} of ` : ""}${plural(section.links, "pair", "pairs")} of linked nodes`;
  const which = sampled
    ? `A sample of ${whole(section.ids.length)} of ${whole(section.total)} nodes, ${section.framelets ? "whole clusters where possible, " : ""}and ${pairs} among them.`
    : `All ${plural(section.total, "node", "nodes")}, and ${pairs}.`;
  const walk = section.framelets ? " Boxes are clusters: the slider walks from the root to the single nodes. A framelet lives on a cluster and compares two of its children." : "";
  picture.explain();
  if (!section.framelets) document.getElementById("of-graph").textContent = "The graph";
  return [
    paragraph(which + walk),
    ...parts,
    note("Drag to move, or use the arrow keys; click the picture, then turn the wheel to zoom. Point at a node to learn more about it."),
  ];
};

// ----------------------------------------------------------------------------- reasons

const signed = (value) => `${value < 0 ? "−" : "+"}${content.numeric ? amount(Math.abs(value)) : Math.abs(value).toFixed(2)}`;

/** Why a node has its score, or null where nothing is known. */
function reasonsOf(id) {
  const why = Object.hasOwn(content.reasons ?? {}, id) ? content.reasons[id] : null;
  if (!why) return null;
  return el(
    "span",
    { class: "reasons" },
    content.numeric
      ? el("span", {}, `why ${amount(why.score)}: the average node has ${amount(why.average)}`)
      : el("span", {}, "why “", name(why.class.name), `”: log-odds ${signed(why.score)}, the average node ${signed(why.average)}`),
    ...why.parts.map(([words, value]) => el("span", { class: "reason" }, name(words), el("span", { class: value < 0 ? "low" : "high" }, signed(value)))),
  );
}

/** A node's name in a list: it shows the node in the picture, and its reasons on pointing. */
function nodeLink(id) {
  const why = () => reasonsOf(id);
  const drawn = content.graph?.ids?.includes(id);
  if (!drawn && !why()) return name(id);
  const button = el("button", { type: "button", class: "link", title: drawn && !why() ? "Show it in the picture" : null, "aria-describedby": "tip" }, name(id));
  const show = (x, y) => why() && tip.show(x, y, el("b", {}, name(id)), why());
  button.addEventListener("pointermove", (event) => event.pointerType === "mouse" && show(event.clientX, event.clientY));
  button.addEventListener("pointerleave", () => tip.hide());
  button.addEventListener("focus", () => {
    const box = button.getBoundingClientRect();
    if (!button.matches(":focus-visible")) return;
    show(box.right, box.bottom);
    if (why()) tip.of = button;
  });
  button.addEventListener("blur", () => tip.hide());
  button.addEventListener("click", () => {
    if (!drawn) return;
    document.getElementById("graph").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth" });
    picture.find(id);
  });
  return button;
}

const classCell = (entry) => (entry ? labelled(entry.class, entry.name) : "–");

/** The largest reasons of a node, each in one piece where the line is long enough. */
const largest = (row) => (content.reasons?.[row.id]?.parts ?? []).slice(0, 3).flatMap(([words, value], i) => [i ? " · " : "", el("span", { class: "piece" }, name(words), " ", signed(value))]);
const explained = (row) => largest(row).length > 0;

/** Nodes by their predicted number. */
function numbersFirst(section) {
  return [
    paragraph(section.words),
    table(numberColumns(section.rows), section.rows, { label: "The nodes to look at first", sortable: true }),
    section.rows.some(explained) ? note("A reason is what it adds to the number of the average node. A column counts by the node’s own value, a neighbour by all that its features do.") : null,
  ];
}

function numberColumns(rows) {
  const off = (row) => (known(row.true) ? row.value - row.true : null);
  const labelled = rows.some((row) => known(row.true));
  return [
    { title: "Node", head: true, cell: (row) => nodeLink(row.id), value: (row) => row.id },
    { title: "Predicted", number: true, cell: (row) => amount(row.value), value: (row) => row.value },
    labelled && { title: "True", number: true, cell: (row) => amount(row.true), value: (row) => row.true },
    labelled && { title: "Off by", number: true, cell: (row) => (known(off(row)) ? signed(off(row)) : "–"), value: off },
    rows.some(explained) && { title: "Largest reasons", class: "settings line", cell: largest },
  ].filter(Boolean);
}

/** Predicted against true numbers of test nodes, their residuals, and the largest errors. */
draw.numbers = (section) => {
  const value = (words = "–") => words.split(/(?= \()/).flatMap((part) => [el("span", { class: "word" }, part.trim()), " "]);
  const scores = [
    { title: "", head: true, class: "line", cell: (row) => row.name },
    { title: "R² (95% interval)", number: true, class: "broken", cell: (row) => value(row.r2) },
    { title: "Mean absolute error (95% interval)", number: true, class: "broken", cell: (row) => value(row.mae) },
  ];
  return [
    paragraph(section.words),
    table(scores, section.scores, { label: "Scores on test nodes", chosen: (row) => row === section.scores[0] }),
    el("div", { class: "curves" }, againstTruth(section), residuals(section)),
    el("h3", {}, "The largest errors"),
    table(numberColumns(section.worst), section.worst, { label: "Test nodes with the largest errors", sortable: true }),
  ];
};

function againstTruth(section) {
  const every = section.points.flat();
  const [low, high] = [Math.min(...every), Math.max(...every)];
  const { figure, box, across, up } = chart({
    title: `Predicted against true numbers of ${plural(section.points.length, "test node", "test nodes")}; on the dashed line they are the same`,
    label: "Predicted against true numbers; on the diagonal they are the same.",
    x: { name: "true number", low, high, show: amount },
    y: { name: "predicted number", low, high, show: amount },
    paths: (x, y) => [svg("path", { class: "train", d: "M0 100L100 0" }), svg("path", { class: "points", d: section.points.map(([truth, value]) => `M${x(truth)} ${y(value)}h0`).join("") })],
  });
  box.addEventListener("pointermove", (event) => {
    const { left, top, width, height } = box.getBoundingClientRect();
    const [x, y] = [(100 * (event.clientX - left)) / width, (100 * (event.clientY - top)) / height];
    const far = ([truth, value]) => (across(truth) - x) ** 2 + (up(value) - y) ** 2;
    const i = section.points.reduce((nearest, point, k) => (far(point) < far(section.points[nearest]) ? k : nearest), 0);
    tip.show(event.clientX, event.clientY, el("b", {}, name(section.ids[i])), el("div", {}, `predicted ${amount(section.points[i][1])}, is ${amount(section.points[i][0])}`));
  });
  box.addEventListener("pointerleave", () => tip.hide());
  return figure;
}

/** How many test nodes are off by how much. */
function residuals(section) {
  const off = section.points.map(([truth, value]) => value - truth);
  const far = Math.max(...off.map(Math.abs)) || 1;
  const bins = new Array(21).fill(0);
  for (const value of off) bins[Math.min(20, Math.floor((21 * (value + far)) / (2 * far)))] += 1;
  const wide = 100 / 21;
  return chart({
    title: "Residuals: how many test nodes are predicted too low (left) and too high (right), and by how much",
    label: "Residuals of test nodes.",
    x: { name: "predicted minus true number", low: -far, high: far, show: amount },
    y: { name: "test nodes", low: 0, high: Math.max(...bins), show: amount },
    paths: (x, y) => [svg("path", { class: "columns", d: bins.map((count, i) => (count ? `M${(wide * i + 0.3).toFixed(2)} 100V${y(count)}h${(wide - 0.6).toFixed(2)}V100z` : "")).join("") }), svg("path", { class: "cross", d: "M50 0V100" })],
  }).figure;
}

draw.ranking = (section) => {
  if (section.numeric) return numbersFirst(section);
  const columns = [
    { title: "Node", head: true, cell: (row) => nodeLink(row.id), value: (row) => row.id },
    !section.by && { title: "Class", cell: (row) => classCell(row.class), value: (row) => row.class?.name },
    { title: "Probability, %", number: true, cell: (row) => percent(row.probability), value: (row) => row.probability },
    section.rows.some((row) => row.true) && { title: "True", cell: (row) => classCell(row.true), value: (row) => row.true?.name },
    section.rows.some(explained) && { title: "Largest reasons", class: "settings line", cell: largest },
  ].filter(Boolean);
  return [
    paragraph(section.words),
    table(columns, section.rows, { label: "The nodes to look at first", sortable: true }),
    section.rows.some(explained) ? note("A reason counts in log-odds, beside those of the average node: +0.69 doubles the odds, −0.69 halves them. A column counts by the node’s own value, a neighbour by all that its features do.") : null,
  ];
};

draw.finding = (section) => {
  const gains = section.curves.flatMap((curve) => curve.gains.map((gain) => ({ ...gain, curve })));
  const several = section.curves.length > 1;
  const columns = [
    several && { title: "Class", head: true, class: "line", cell: (row) => classCell(row.curve), value: (row) => row.curve.name },
    { title: "Looked at", head: !several, cell: (row) => name(`first ${percent(row.share, 0)}%`), value: (row) => row.share },
    { title: "Nodes", number: true, cell: (row) => whole(row.nodes), value: (row) => row.nodes },
    { title: "Found", number: true, cell: (row) => fixed(row.found, row.found % 1 ? 1 : 0), value: (row) => row.found },
    { title: "Precision, %", number: true, cell: (row) => [percent(row.precision), meter(row.precision)], value: (row) => row.precision },
    { title: "Recall, %", number: true, cell: (row) => [percent(row.recall), meter(row.recall)], value: (row) => row.recall },
    { title: "Gain", number: true, cell: (row) => `× ${fixed(row.lift, 1)}`, value: (row) => row.lift },
  ].filter(Boolean);
  return [
    paragraph(section.words),
    el("div", { class: "curves" }, section.curves.slice(0, 6).map((curve) => precisionPlot(curve, several))),
    table(columns, gains, { label: "What is found at the top", sortable: true }),
    note("Gain: how many times more than among test nodes drawn at random."),
  ];
};

/** Precision over recall, in the steps whose area is the average precision; dashed is what nodes drawn at random give. */
function precisionPlot(curve, titled) {
  const axis = (words) => ({ name: words, low: 0, high: 1, show: (value) => amount(100 * value) });
  const title = `${titled ? `“${curve.name}”: average` : "Average"} precision ${percent(curve.average_precision)}%; drawn at random, the dashed line, ${percent(curve.positives / Math.max(1, curve.total))}%`;
  return chart({
    title,
    label: `${title}.`,
    x: axis("recall: found among all there are, %"),
    y: axis("precision: right among those looked at, %"),
    paths: (x, y) => {
      let [d, before] = ["", 0];
      curve.recall.forEach((recall, i) => {
        if (recall > before) d += `${d ? "V" : "M0 "}${y(curve.precision[i])}H${x(recall)}`;
        before = recall;
      });
      return [svg("path", { class: "train", d: `M0 ${y(curve.positives / Math.max(1, curve.total))}H100` }), svg("path", { class: "val", d })];
    },
  }).figure;
}

draw.importance = (section) => {
  const most = Math.max(1e-9, ...section.rows.map((row) => row.drop ?? 0));
  const columns = [
    { title: "Column", head: true, class: "line", cell: (row) => name(row.name), value: (row) => row.name },
    { title: `${section.larger ? "Drop" : "Growth"} of ${section.metric}${content.percent === false ? "" : ", points"}`, number: true, cell: (row) => [`${measured(row.drop)} ± ${measured(row.std)}`, meter((row.drop ?? 0) / most)], value: (row) => row.drop },
    { title: "Growth of the loss", number: true, cell: (row) => fixed(row.loss, 3), value: (row) => row.loss },
    section.rows.some((row) => row.columns > 1) && { title: "Features made of it", number: true, cell: (row) => whole(row.columns), value: (row) => row.columns },
  ].filter(Boolean);
  return [
    paragraph(section.words),
    table(columns, section.rows, { label: "Importance of columns", sortable: true }),
    section.rows.some((row) => row.drop < 0) ? note("Below zero: shuffling the column did not harm, as it happens by chance where there are few test nodes.") : null,
  ];
};

// -------------------------------------------------------------------------------- ends

draw.unsure = (section) => {
  const labelled = section.rows.some((row) => row.true);
  const columns = [
    { title: "Node", head: true, class: "line", cell: (row) => nodeLink(row.id), value: (row) => row.id },
    { title: "Predicted", cell: (row) => classCell(row.predicted), value: (row) => row.predicted?.name },
    { title: "with, %", number: true, cell: (row) => percent(row.probability), value: (row) => row.probability },
    { title: "Or else", cell: (row) => classCell(row.second), value: (row) => row.second?.name },
    { title: "with, %", number: true, cell: (row) => percent(row.second_probability), value: (row) => row.second_probability },
    labelled && { title: "True", cell: (row) => classCell(row.true), value: (row) => row.true?.name },
  ].filter(Boolean);
  return [
    el("p", {}, "Nodes whose two most probable classes are closest. If somebody can label a few more nodes, these are worth it."),
    table(columns, section.rows, { label: "The nodes the model is least sure of", sortable: true }),
  ];
};

draw.repeat = (section) => [
  section.command ? el("pre", {}, section.command) : absent("The command is not known."),
  el("dl", { class: "facts" }, section.facts.flatMap((fact) => [el("dt", {}, fact.name), el("dd", {}, fact.value)])),
];

// ---------------------------------------------------------------------------- the page

function fillFigures() {
  const facts = content.data.facts ?? [];
  const model = content.score?.bars?.find((bar) => bar.kind === "model");
  const figures = facts.filter((fact) => ["nodes", "links", "classes"].some((word) => fact.name.endsWith(word)) && fact.name !== "labelled nodes");
  const shown = [
    model && { name: content.metric === "accuracy" ? "test accuracy" : `test ${content.metric}`, value: score(model.mean), main: true },
    ...(content.score?.bars ?? []).filter((bar) => bar.kind !== "model").map((bar) => ({ name: bar.name.toLowerCase(), value: score(bar.mean) })),
    ...figures.map((fact) => ({ name: fact.name, value: whole(fact.value) })),
  ].filter(Boolean);
  document.getElementById("figures").append(...shown.map((fact) => el("div", { class: fact.main && "main" }, el("dt", {}, fact.name), el("dd", {}, fact.value))));
}

/** The first few nodes to look at, on the first screen. */
function fillFirst() {
  const rows = content.ranking?.rows?.slice(0, 5) ?? [];
  if (!rows.length) return;
  const said = (row) => (content.numeric ? amount(row.value) : `${percent(row.probability)}%`);
  const listed = rows.flatMap((row, i) => [i ? " · " : "", el("span", { class: "piece" }, nodeLink(row.id), " ", said(row))]);
  document.getElementById("first").append("Look at these first: ", ...listed, content.ranking.total > rows.length ? " · " : "", content.ranking.total > rows.length ? el("a", { href: "#ranking" }, "and more") : "");
}

/** Fills a section; one that fails says so, and the others stay. */
function fillSection(section) {
  const body = section.querySelector(".body");
  const data = content[section.id] ?? { absent: "Not known." };
  try {
    if (data.absent) {
      body.append(absent(data.absent));
      if (data.words) body.append(paragraph(data.words));
    } else body.append(...[draw[section.id](data)].flat(3).filter(Boolean));
  } catch (error) {
    body.replaceChildren(absent("This part could not be drawn."));
    console.error(section.id, error);
  }
}

function fillContents() {
  const links = new Map();
  for (const section of document.querySelectorAll("main > section")) {
    const link = el("a", { href: `#${section.id}` }, section.querySelector("h2").textContent);
    links.set(section.id, link);
    document.getElementById("contents").append(el("li", {}, link));
  }
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      for (const [id, link] of links) {
        if (id === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);
}

function switchTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours");
    button.setAttribute("aria-pressed", String(dark()));
    picture?.recolour();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  // Paper is light: the canvas has to be painted for it, all else follows the style sheet.
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    picture?.recolour();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    picture?.recolour();
  });
  show();
}

if (content.numeric) document.documentElement.dataset.numbers = "";
fillFigures();
// A page of a comparison has some of the sections only.
document.querySelectorAll("main > section").forEach((section) => (section.id in content ? fillSection(section) : section.remove()));
fillFirst();
fillContents();
switchTheme();
// A page that scrolls to the node that has the focus keeps its reasons.
addEventListener("scroll", () => (tip.of && tip.of === document.activeElement ? tip.follow() : tip.hide()), { passive: true, capture: true });
addEventListener("keydown", (event) => event.key === "Escape" && tip.hide());
