// The color theme, messages for failed requests of htmx, and the input of forms during a login. The theme is that of the system
// unless the visitor has chosen one; it is set before the page is drawn.
"use strict";

const chosen = localStorage.getItem("theme");
if (chosen) {
  document.documentElement.dataset.theme = chosen;
}
const current = () =>
  document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
// For the description of the API, whose page has no button.
const setClass = () => document.documentElement.classList.toggle("dark-mode", current() === "dark");
setClass();

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const show = () => {
    setClass();
    if (button) {
      button.textContent = current() === "dark" ? "Light theme" : "Dark theme";
    }
  };
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const theme = current() === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      localStorage.setItem("theme", theme);
      show();
      document.dispatchEvent(new Event("theme"));
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    show();
    document.dispatchEvent(new Event("theme"));
  });
  show();
});

// The key / focuses the search.
document.addEventListener("keydown", (event) => {
  const field = document.getElementById("find");
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && field && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
  }
});

// The input of forms, so that a visitor who is refused can log in and come back to it. It stays in this tab, without files,
// passwords and hidden fields, and only until another page is opened.
const INPUT = "input";
const address = () => location.pathname + location.search;
const fieldsOf = (form) =>
  [...form.elements].filter((field) => field.name && !["hidden", "password", "file", "submit", "button"].includes(field.type));

function keepInput(wasRefused) {
  const forms = {};
  for (const form of document.querySelectorAll("main form[method=post][aria-label]")) {
    forms[form.ariaLabel] = fieldsOf(form).map(({ name, type, value, checked }) => ({ name, type, value, checked }));
  }
  if (Object.values(forms).some((fields) => fields.length)) {
    try {
      sessionStorage.setItem(INPUT, JSON.stringify({ address: address(), forms, wasRefused }));
    } catch {
      // There is more than a browser stores.
      sessionStorage.removeItem(INPUT);
    }
  }
}

function restoreInput() {
  const kept = JSON.parse(sessionStorage.getItem(INPUT));
  if (!kept || location.pathname.startsWith("/login")) {
    return;
  }
  const isSame = kept.address === address();
  if (isSame && document.querySelector("main [data-refused]")) {
    sessionStorage.setItem(INPUT, JSON.stringify({ ...kept, wasRefused: true }));
    return;
  }
  sessionStorage.removeItem(INPUT);
  if (!isSame || !kept.wasRefused) {
    return;
  }
  for (const form of document.querySelectorAll("main form[method=post][aria-label]")) {
    for (const { name, type, value, checked } of kept.forms[form.ariaLabel] || []) {
      const isChoice = ["checkbox", "radio"].includes(type);
      const field = fieldsOf(form).find(
        (one) => one.name === name && one.type === type && (!isChoice || one.value === value),
      );
      if (field && isChoice) {
        field.checked = checked;
      } else if (field) {
        field.value = value;
      }
    }
  }
}

document.addEventListener("submit", (event) => {
  if (event.target.matches("main form[method=post]") && !location.pathname.startsWith("/login")) {
    keepInput(false);
  }
});
document.addEventListener("click", (event) => {
  // After a refusal, the form may be missing, and its input was kept before.
  if (event.target.closest("a[data-log-in]") && !document.querySelector("main [data-refused]")) {
    keepInput(true);
  }
});
document.addEventListener("DOMContentLoaded", restoreInput);

// Links that look like buttons react to the space bar, as buttons do.
document.addEventListener("keydown", (event) => {
  if (event.key === " " && event.target.matches("a[role=button]")) {
    event.preventDefault();
    event.target.click();
  }
});

// A request of htmx that fails leaves the page as it is. The part that was to be replaced has a link that does the same.
function showFailure(event) {
  const waiting = event.detail.elt.querySelector("[aria-busy]");
  if (waiting) {
    waiting.removeAttribute("aria-busy");
    waiting.setAttribute("role", "alert");
    waiting.textContent = "The result could not be loaded. Use the link to try again.";
  }
}
document.addEventListener("htmx:responseError", showFailure);
document.addEventListener("htmx:sendError", showFailure);
