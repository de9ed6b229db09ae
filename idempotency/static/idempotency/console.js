// Refreshes a part of the page, and pauses while nobody looks at it. The page works without this.
"use strict";
{
  const control = document.querySelector("[data-idem-refresh]");
  const id = control && control.dataset.idemRefresh;
  const remembered = "idempotency.refresh";
  let timer = 0;

  const refresh = async () => {
    const part = document.getElementById(id);
    // Never under somebody's hands: neither what they focus nor what they opened is replaced.
    if (document.hidden || part.contains(document.activeElement) || part.querySelector("details[open]")) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(id);
      if (answer.ok && fresh) part.replaceChildren(...fresh.childNodes);
    } catch {
      // The server cannot be reached just now; the time on the page says how old it is.
    }
  };

  const schedule = () => {
    clearInterval(timer);
    const seconds = Number(control.value);
    if (seconds && !document.hidden) timer = setInterval(refresh, seconds * 1000);
  };

  if (control) {
    control.closest("label").hidden = false;
    control.value = localStorage.getItem(remembered) || control.value;
    control.addEventListener("change", () => {
      localStorage.setItem(remembered, control.value);
      schedule();
    });
    document.addEventListener("visibilitychange", () => {
      schedule();
      if (Number(control.value)) refresh();
    });
    schedule();
  }

  // A double click sends a form once; the server refuses the second one all the same.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-idem-once]")) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => document.querySelectorAll("[data-sent]").forEach((form) => delete form.dataset.sent));
}
