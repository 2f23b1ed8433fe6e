// The color theme, and messages for failed requests of htmx. The theme is that of the system unless the visitor has chosen one; it
// is set before the page is drawn.
"use strict";

const chosen = localStorage.getItem("theme");
if (chosen) {
  document.documentElement.dataset.theme = chosen;
}

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const current = () =>
    document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const show = () => {
    button.textContent = current() === "dark" ? "Light theme" : "Dark theme";
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const theme = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
    show();
    document.dispatchEvent(new Event("theme"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    show();
    document.dispatchEvent(new Event("theme"));
  });
  show();
});

// Links that look like buttons react to the space bar, as buttons do.
document.addEventListener("keydown", (event) => {
  if (event.key === " " && event.target.matches("a[role=button]")) {
    event.preventDefault();
    event.target.click();
  }
});

// A request of htmx that fails leaves the page as it is. A row that was to be replaced has a link that does the same.
function showFailure(event) {
  const waiting = event.detail.elt.querySelector("[aria-busy]");
  if (waiting) {
    waiting.removeAttribute("aria-busy");
    waiting.setAttribute("role", "alert");
    waiting.textContent = "The next rows could not be loaded. Use the link to try again.";
  }
}
document.addEventListener("htmx:responseError", showFailure);
document.addEventListener("htmx:sendError", showFailure);
