// Searches all pages, folds the menu on a phone, and replaces pictures by live figures if the site comes from a server.

const top_ = document.body.dataset.top;
const box = document.getElementById("search");
const found = document.getElementById("found");

box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const score = ([, title, heading, text]) => {
    const [high, low] = [`${title} ${heading}`.toLowerCase(), text.toLowerCase()];
    let sum = 0;
    for (const word of words) {
      const here = (high.includes(word) ? 10 : 0) + Math.min(5, low.split(word).length - 1);
      if (here === 0) return 0;
      sum += here;
    }
    return sum;
  };
  const hits = window.searchIndex.map((entry) => [score(entry), entry]).filter(([one]) => one > 0);
  hits.sort(([one], [other]) => other - one);
  found.replaceChildren(
    ...hits.slice(0, words.length ? 12 : 0).map(([, [place, title, heading]]) => {
      const link = document.createElement("a");
      link.href = top_ + place;
      link.textContent = heading === title ? title : `${title}: ${heading}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }),
  );
});

// On a phone the text comes first; the style shows the fold at the same width.
if (matchMedia("(max-width: 760px)").matches) document.getElementById("menu").open = false;

// From disk a browser loads no modules, so the picture stays.
if (location.protocol !== "file:") {
  for (const place of document.querySelectorAll(".live")) {
    const picture = place.previousElementSibling;
    fetch(place.dataset.source.split("#")[0], { method: "HEAD" }).then((answer) => {
      if (!answer.ok) return;
      const frame = document.createElement("iframe");
      frame.src = place.dataset.source;
      frame.title = picture?.querySelector("img")?.alt ?? "A live figure";
      frame.height = place.dataset.height;
      frame.loading = "lazy";
      const said = document.createElement("p");
      said.textContent = "Change it yourself:";
      place.append(said, frame);
    });
  }
}
