// The theme: that of the system, unless the visitor has chosen another one. It runs before the page is drawn.
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
  show();
});
