// The form for a file: a place to drop it, and progress while it is sent and while its preview is computed. It does the same without
// this script.
"use strict";

// Sends a form, and returns the request when it has ended. `show` gets the share that was sent.
function send(form, submitter, show) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (event) => event.lengthComputable && show(event.loaded / event.total));
    request.upload.addEventListener("load", () => show(1));
    request.addEventListener("loadend", () => resolve(request));
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "text/html");
    request.send(new FormData(form, submitter));
  });
}

async function submit(form, submitter) {
  const line = form.querySelector(".progress");
  const [bar, text] = line.children;
  line.hidden = false;
  const buttons = form.querySelectorAll("button");
  const show = (share) => {
    // Without a value, the bar moves.
    share < 1 ? (bar.value = share) : bar.removeAttribute("value");
    text.textContent = share < 1 ? `Sending: ${Math.floor(share * 100)} %` : "Sent. The service reads all rows and compares the tag before and after.";
  };
  show(0);
  // They are disabled only now, because a disabled button is not sent.
  const sent = send(form, submitter, show);
  buttons.forEach((button) => (button.disabled = true));
  const request = await sent;
  buttons.forEach((button) => (button.disabled = false));
  line.hidden = true;
  const found = new DOMParser().parseFromString(request.responseText, "text/html").getElementById("main");
  if (request.responseURL && new URL(request.responseURL).pathname !== location.pathname) {
    location.assign(request.responseURL);
  } else if (found?.querySelector("form.file")) {
    // The page comes from templates of the server, which escape all texts.
    document.getElementById("main").replaceWith(document.adoptNode(found));
    listen();
    document.dispatchEvent(new Event("theme"));
    const result = document.querySelector("#preview, [role=alert]");
    result?.scrollIntoView();
    result?.focus({ preventScroll: true });
  } else {
    // What was given stays in the form.
    line.hidden = false;
    bar.value = 0;
    text.textContent = found?.innerText.trim() || "The service did not respond. Try again.";
  }
}

function listen() {
  const form = document.querySelector("form.file");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(form, event.submitter);
  });
  const drop = form?.querySelector(".drop");
  const over = (is) => (event) => {
    event.preventDefault();
    drop.classList.toggle("over", is);
  };
  drop?.addEventListener("dragover", over(true));
  drop?.addEventListener("dragleave", over(false));
  drop?.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) {
      drop.querySelector("input").files = event.dataTransfer.files;
      form.requestSubmit(form.querySelector("button.preview"));
    }
  });
}
listen();
