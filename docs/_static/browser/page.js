// Runs bayesatk in this page. Nothing is fetched but what lies beside the page and Pyodide.
const PACKAGES = ["numpy", "scipy", "pandas", "xarray", "narwhals", "threadpoolctl"];
const page = document.documentElement;
const at = (id) => document.getElementById(id);
const beside = (name) => new URL(name, document.baseURI).href;

function say(text, wrong = false) {
  at("status").textContent = text;
  at("status").classList.toggle("wrong", wrong);
}

async function bytes(name) {
  const answer = await fetch(beside(name));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

async function start() {
  say("Starting Python ...");
  const folder = beside(page.dataset.pyodide);
  const { loadPyodide } = await import(`${folder}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: folder });
  python.unpackArchive(await bytes(page.dataset.library), "wheel"); // into site-packages
  say("Loading NumPy, SciPy, pandas and xarray ...");
  const told = [];
  await python.loadPackage(PACKAGES, { errorCallback: (line) => told.push(line) });
  const missing = PACKAGES.filter((name) => !(name in python.loadedPackages));
  if (missing.length) throw new Error(`No package ${missing.join(", ")} in ${folder}. ${told.join(" ")}`);
  python.runPython(new TextDecoder().decode(await bytes("in_browser.py")));
  return python;
}

let starting;

async function evaluate(file) {
  for (const id of ["card", "table", "sentences", "curve"]) at(id).replaceChildren();
  try {
    starting ??= start();
    const python = await starting;
    say(`Evaluating ${file.name} ...`);
    const ending = file.name.match(/\.\w+$/)?.[0] ?? ".csv";
    python.FS.writeFile(`/tmp/runs${ending}`, new Uint8Array(await file.arrayBuffer()));
    await new Promise((drawn) => setTimeout(drawn, 50)); // the line above is shown first
    const result = JSON.parse(python.globals.get("evaluate_file")(`/tmp/runs${ending}`));
    if (result.error) return say(result.error, true);
    at("card").textContent = result.card;
    at("table").innerHTML = result.table;
    at("curve").innerHTML = result.curve;
    for (const sentence of result.sentences) {
      at("sentences").append(Object.assign(document.createElement("li"), { textContent: sentence }));
    }
    say(`${file.name}: done, in this page.`);
  } catch (error) {
    starting = undefined;
    say(String(error.message ?? error), true);
  }
}

at("file").addEventListener("change", (event) => event.target.files[0] && evaluate(event.target.files[0]));
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  at("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files[0]) evaluate(event.dataTransfer.files[0]);
  });
}
