// Bundles what the browser gets into static/dist: `node static/build.mjs [--watch]`.
//
//   app.js, app.css   our own modules; the design system and our own rules (entries static/src/app.*)
//   menus.js          the design system's behaviour, which app.js asks for
//   plotly.js         charts: Plotly's core with scatter, bar and heatmap only, loaded by pages with a chart
//   early.js          sets light or dark before the page is painted, asks for the data of charts before their scripts are here
//   htmx.js           partial page updates
//   icons.svg         the icons that templates name (static/src/icons.json), as one sprite
//   axe.js            accessibility checks, only used by tests/browser and never linked by a page
//
// Everything runs under a content security policy without unsafe-inline and unsafe-eval.

import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

import esbuild from "esbuild";
import postcss from "postcss";

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = path.join(here, "..", "node_modules");
const source = path.join(here, "src");
const target = path.join(here, "dist");

const shared = {
  bundle: true,
  minify: true,
  legalComments: "linked",
  target: ["es2022", "chrome110", "firefox115", "safari16"],
  logLevel: "warning",
};

// Plotly adds its style rules through an inline <style>, which a strict policy refuses. The replacement
// uses constructed style sheets, which the policy allows because only scripts can make them.
const plotlyStyles = {
  name: "plotly-styles",
  setup(build) {
    build.onLoad({ filter: /plotly\.js\/src\/lib\/dom\.js$/ }, async ({ path: file }) => {
      const replacement = JSON.stringify(path.join(source, "plotly", "styles.cjs"));
      const original = await readFile(file, "utf8");
      return { contents: `${original}\nObject.assign(module.exports, require(${replacement}));\n` };
    });
  },
};

// Where names of classes stand: a rule of the design system is kept if each class that it asks for is a word of these files,
// or begins as one that code puts together (`alert-{`). Three quarters of its rules are about what no page has.
const NAMING = ["templates", "monitoring", "policies", "numaweb", "static/src"].map((folder) => path.join(here, "..", folder));
const BEHAVIOUR = path.join(modules, "@tabler", "core", "dist", "js", "tabler.esm.js");

async function named() {
  const found = await Promise.all(NAMING.map((folder) => readdir(folder, { recursive: true, withFileTypes: true })));
  const files = found.flat().filter((each) => each.isFile() && /\.(html|py|js)$/.test(each.name));
  const paths = [BEHAVIOUR, ...files.map((each) => path.join(each.parentPath ?? each.path, each.name))];
  const text = (await Promise.all(paths.map((file) => readFile(file, "utf8")))).join("\n");
  const words = new Set(text.match(/[\w-]+/g));
  const beginnings = [...new Set(text.match(/[a-z][\w-]*-(?=\$?\{|["'`])/g))];
  return (name) => words.has(name) || beginnings.some((each) => name.startsWith(each));
}

/** Classes without which a selector finds nothing. */
function required(selector) {
  const plain = selector.replace(/:(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)/g, "");
  return (plain.match(/\.(?:\\.|[\w-])+/g) ?? []).map((each) => each.slice(1).replaceAll("\\", ""));
}

// Of its vertical side bar, which no page has, one rule asks whether the page `:has(> [class*=...])`, so a browser styles the
// whole page anew whenever a class changes anywhere in it: drawing the charts of a history takes half as long again.
const SIDE_BAR = /navbar-vertical|navbar-folded|data-bs-sidebar/;
const onlyUsed = {
  name: "only-used",
  setup(build) {
    build.onLoad({ filter: /tabler\.css$/ }, async ({ path: file }) => {
      const isNamed = await named();
      const rules = postcss.parse(await readFile(file, "utf8"), { from: file, map: false });
      rules.walkRules((rule) => {
        const kept = rule.selectors.filter((selector) => !SIDE_BAR.test(selector) && required(selector).every(isNamed));
        if (kept.length === 0) rule.remove();
        else if (kept.length < rule.selectors.length) rule.selectors = kept;
      });
      return { contents: rules.toString(), loader: "css" };
    });
  },
};

const bundles = [
  {
    ...shared,
    entryPoints: { app: path.join(source, "app.js"), menus: path.join(source, "menus.js") },
    outdir: target,
    format: "esm",
    external: ["./menus.js"],
  },
  {
    ...shared,
    entryPoints: { early: path.join(source, "early.js") },
    outdir: target,
    format: "iife",
  },
  {
    ...shared,
    entryPoints: { app: path.join(source, "app.css"), admin: path.join(source, "admin.css") },
    outdir: target,
    loader: { ".woff2": "file", ".svg": "dataurl" },
    plugins: [onlyUsed],
  },
  {
    ...shared,
    entryPoints: { plotly: path.join(source, "plotly", "index.cjs") },
    outdir: target,
    format: "iife",
    globalName: "Plotly",
    // The browser has no Node globals; Plotly's dependencies ask for these two.
    define: { global: "globalThis", "process.env.NODE_DEBUG": "false" },
    // Style sheets of Plotly's maps, which are not part of the bundle.
    loader: { ".css": "empty" },
    plugins: [plotlyStyles],
  },
];

const copies = {
  "htmx.js": path.join(modules, "htmx.org", "dist", "htmx.min.js"),
  "axe.js": path.join(modules, "axe-core", "axe.min.js"),
  "favicon.svg": path.join(source, "favicon.svg"),
};

async function copyAll() {
  for (const [name, from] of Object.entries(copies)) await copyFile(from, path.join(target, name));
}

async function sprite() {
  const names = JSON.parse(await readFile(path.join(source, "icons.json"), "utf8"));
  const symbols = names.map(async (name) => {
    const text = await readFile(path.join(modules, "@tabler", "icons", "icons", "outline", `${name}.svg`), "utf8");
    const shapes = text.replace(/^[\s\S]*?<svg[^>]*>/, "").replace("</svg>", "").replace(/\s+/g, " ");
    const pen = 'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';
    return `<symbol id="${name}" viewBox="0 0 24 24" ${pen}>${shapes.trim()}</symbol>`;
  });
  const logo = (await readFile(path.join(source, "favicon.svg"), "utf8"))
    .replace(/^<svg[^>]*viewBox="([^"]*)"[^>]*>/, '<symbol id="numaweb" viewBox="$1">').replace("</svg>", "</symbol>").replace(/\s+/g, " ");
  const all = [...(await Promise.all(symbols)), logo.trim()].join("");
  await writeFile(path.join(target, "icons.svg"), `<svg xmlns="http://www.w3.org/2000/svg">${all}</svg>`);
}

async function report() {
  for (const name of ["app.js", "app.css", "plotly.js", "htmx.js"]) {
    const { size } = await stat(path.join(target, name));
    console.log(`  static/dist/${name.padEnd(10)} ${(size / 1024).toFixed(0).padStart(6)} KiB`);
  }
}

async function watch() {
  const contexts = await Promise.all(bundles.map((options) => esbuild.context({ ...options, logLevel: "info" })));
  await Promise.all(contexts.map((context) => context.watch()));
}

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
await copyAll();
await sprite();
if (process.argv.includes("--watch")) {
  await watch();
} else {
  await Promise.all(bundles.map((options) => esbuild.build(options)));
  await report();
}
