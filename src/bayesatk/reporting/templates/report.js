for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => row.cells[column].textContent.trim();
    const number = (text) => (text.match(/^[\[<>]?[+-]?[\d.]/) ? parseFloat(text.replace(/^[\[<> ]+/, "")) : NaN);
    const rows = Array.from(body.rows);
    const numeric = rows.some((row) => key(row)) && rows.every((row) => !key(row) || !isNaN(number(key(row))));
    rows.sort((a, b) => {
      const left = key(a), right = key(b);
      if (!left || !right) return left ? -1 : right ? 1 : 0;
      const order = numeric ? number(left) - number(right) : left.localeCompare(right);
      return ascending ? order : -order;
    });
    body.append(...rows);
  });
}
const chooser = document.querySelector("#chooser select");
if (chooser) {
  // Without this script all metrics are there, one below the other.
  const show = () => {
    for (const own of document.querySelectorAll("[data-metric]")) own.hidden = own.dataset.metric !== chooser.value;
    for (const table of document.querySelectorAll("#tables table")) {
      const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === "metric");
      if (column >= 0) for (const row of table.tBodies[0].rows) row.hidden = row.cells[column].textContent !== chooser.value;
    }
  };
  chooser.closest("p").hidden = false;
  chooser.addEventListener("change", show);
  show();
}
const copier = document.getElementById("copier");
copier.hidden = false;
copier.querySelector("button").addEventListener("click", async () => {
  const text = document.getElementById("bibtex"), said = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(text.textContent);
    said.textContent = "Copied.";
  } catch {
    // Without leave for the clipboard the entries are selected, to be copied by hand.
    getSelection().selectAllChildren(text);
    said.textContent = "Selected: copy with Ctrl+C.";
  }
});
// Paper shows what is folded shut on a screen.
addEventListener("beforeprint", () => { for (const own of document.querySelectorAll("details")) own.open = true; });
