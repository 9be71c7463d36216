// SPDX-License-Identifier: Apache-2.0
// Opens a page of `headrace report` in a real browser, and prints what is in it as JSON:
//   node page_browser.mjs chrome|firefox EXECUTABLE MODULES FILE [WIDTH [SCREENSHOT]]
import { createRequire } from "node:module";
import path from "node:path";

const [browserName, executablePath, modules, file, width = "1280", screenshot] = process.argv.slice(2);
const puppeteer = createRequire(path.join(modules, "x.js"))("puppeteer-core");
const browser = await puppeteer.launch({
  browser: browserName,
  executablePath,
  args: browserName === "chrome" ? ["--no-sandbox", "--disable-gpu"] : [],
});
const answer = { errors: [], requests: [] };
try {
  const page = await browser.newPage();
  page.on("console", (message) => ["error", "warn", "warning"].includes(message.type()) && answer.errors.push(message.text().slice(0, 200)));
  page.on("pageerror", (error) => answer.errors.push(String(error.message).slice(0, 200)));
  page.on("dialog", (dialog) => {
    answer.errors.push("a dialog opened");
    dialog.dismiss();
  });
  page.on("request", (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || answer.requests.push(request.url().slice(0, 100)));
  await page.setViewport({ width: Number(width), height: 900 });
  await page.goto(`file://${path.resolve(file)}`);
  await page.waitForFunction(() => document.querySelectorAll("#facts dd").length > 0 && [...document.querySelectorAll("figure")].every((figure) => figure.querySelector("svg")));
  answer.overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  answer.title = await page.evaluate(() => document.querySelector("#verdict h1").textContent);
  answer.verdict = await page.evaluate(() => document.querySelector("#verdict").innerText);
  answer.sections = await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
    return new Promise((done) =>
      setTimeout(
        () =>
          done(
            Object.fromEntries(
              [...document.querySelectorAll("main > section")].map((section) => [
                section.id,
                {
                  title: section.querySelector("h2").textContent,
                  shapes: section.querySelectorAll("figure svg :is(rect, path, circle)").length,
                  columns: [...section.querySelectorAll("th")].map((th) => th.textContent),
                  rows: [...section.querySelectorAll("tbody tr")].map((tr) => [...tr.children].map((td) => (td.dataset.value === undefined ? td.textContent : Number(td.dataset.value)))),
                  query: section.querySelector("pre")?.textContent ?? "",
                },
              ]),
            ),
          ),
        100,
      ),
    );
  });
  const ticks = () => page.evaluate(() => [...document.querySelectorAll("#mounts figure [aria-label='x-axis tick label'] text")].map((text) => text.textContent).join(" "));
  const figure = await page.$("#mounts figure svg");
  if (figure) {
    answer.ticks = [await ticks()];
    await figure.scrollIntoView();
    const box = await figure.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await new Promise((done) => setTimeout(done, 200));
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await new Promise((done) => setTimeout(done, 200));
    answer.ticks.push(await ticks());
    await page.click("#mounts .note button");
    answer.ticks.push(await ticks());
  }
  const tree = await page.$("#files figure svg:last-of-type");
  if (tree) {
    await tree.scrollIntoView();
    const box = await tree.boundingBox();
    answer.tip = "";
    for (let i = 1; i < 20 && !answer.tip; i++) {
      await page.mouse.move(box.x + (box.width * i) / 20, box.y + (box.height * i) / 20);
      await new Promise((done) => setTimeout(done, 100));
      answer.tip = await page.evaluate(() => [...document.querySelectorAll("#files figure svg g[aria-label='tip']")].map((tip) => tip.textContent).join(""));
    }
  }
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  answer.themes = [];
  for (let i = 0; i < 3; i++) {
    await page.click("#theme");
    answer.themes.push(await background());
  }
  if (screenshot) {
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = false;
      scrollTo(0, 0);
    });
    await page.mouse.move(0, 0);
    await page.screenshot({ path: screenshot, fullPage: browserName === "chrome" });
  }
  answer.pdf = (await page.pdf({ format: "A4" })).length;
} finally {
  await browser.close();
}
console.log(JSON.stringify(answer));
