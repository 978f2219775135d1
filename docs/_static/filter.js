// On the page of the API: a field that leaves only the names that contain what is typed.
document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article.bd-article");
  const rows = article ? article.querySelectorAll("table.autosummary tr") : [];
  if (!rows.length) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "form-control api-filter";
  field.placeholder = "Filter names";
  field.setAttribute("aria-label", "Filter names");
  article.querySelector("h1").after(field);
  field.addEventListener("input", () => {
    const typed = field.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(typed);
    for (const section of article.querySelectorAll("section section")) {
      const own = section.querySelectorAll("table.autosummary tr");
      section.hidden = typed !== "" && (!own.length || [...own].every((row) => row.hidden));
    }
  });
});
