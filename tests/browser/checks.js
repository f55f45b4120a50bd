// What a page of a report must not have; every check returns the places where it does.
({
  /** Parts that are wider than their room. */
  wide() {
    const parts = document.querySelectorAll("main .scroll:has(.table), main section, main figure, .masthead");
    return [...parts]
      .filter((one) => one.scrollWidth > one.clientWidth + 1)
      .map((one) => `${one.closest("section")?.id} ${one.ariaLabel ?? one.className}: ${one.scrollWidth} > ${one.clientWidth}`);
  },

  /** Words and numbers of up to 24 characters that are broken over two lines. */
  broken() {
    const found = [];
    for (const cell of document.querySelectorAll("table.table th, table.table td, #first, .chart p")) {
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        for (const word of text.data.matchAll(/(?<!\S)\S{1,24}(?!\S)/g)) {
          const range = document.createRange();
          range.setStart(text, word.index);
          range.setEnd(text, word.index + word[0].length);
          const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
          if (lines.size > 1) found.push(`${cell.closest("section")?.id}: ${word[0]}`);
        }
      }
    }
    return found;
  },

  /** Pictures with words that are cut or overlap, axes without a name or numbers, lines outside, or nothing drawn. */
  charts() {
    const found = [];
    const overlap = (a, b) =>
      Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    for (const chart of document.querySelectorAll(".chart")) {
      const tell = (what) => found.push(`${chart.closest("section").id}: ${what}`);
      const room = chart.getBoundingClientRect();
      const texts = chart.querySelectorAll("figcaption, .up, .across, .plot .x, .plot .y, .plot .mark");
      const words = [...texts].map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return [one.textContent, range.getBoundingClientRect()];
      });
      words.forEach(([text, box], i) => {
        if (box.left < room.left - 1 || box.right > room.right + 1) tell(`“${text}” is cut`);
        for (const [other, that] of words.slice(i + 1)) if (overlap(box, that)) tell(`“${text}” lies over “${other}”`);
      });
      for (const name of [".up", ".across"]) if (chart.querySelector(name).textContent.trim().length < 4) tell(`no name ${name}`);
      for (const axis of [".x", ".y"]) if (chart.querySelectorAll(axis).length < 2) tell(`no numbers ${axis}`);
      for (const path of chart.querySelectorAll("path[d]")) {
        const { x, y, width, height } = path.getBBox();
        if (!(Math.min(x, y) >= -0.1 && Math.max(x + width, y + height) <= 100.1)) tell("a line leaves the picture");
      }
      if (!chart.querySelector(".val, .points, .columns")?.getAttribute("d")) tell("nothing is drawn");
    }
    return found;
  },

  /** The colours of lines and columns in pictures. */
  lines() {
    const drawn = document.querySelectorAll(".plot .val, .plot .train, .plot .best, .plot .cross, .plot .columns");
    return [...drawn].map(getComputedStyle).map((look) => (look.stroke === "none" ? look.fill : look.stroke));
  },
});
