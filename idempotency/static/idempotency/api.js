// The forms of the browsable API that have a field for the key: it is sent as the header that it is, not in the body.
// An answer that is no page is shown below the form, which stays with its key: sending it again is the same operation.
(() => {
  const NAME = "Idempotency-Key";

  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      const field = form.elements.namedItem(NAME);
      if (!field) return;
      event.preventDefault();
      // Before the browsable API's own handler.
      event.stopImmediatePropagation();
      send(form, field, event.submitter);
    },
    true,
  );

  async function send(form, field, button) {
    const method = button?.dataset.method || form.dataset.method || "POST";
    const headers = { Accept: "text/html; q=1.0, */*", [NAME]: field.value };
    const csrf = JSON.parse(document.getElementById("drf_csrf").textContent);
    headers[csrf.csrfHeaderName] = csrf.csrfToken;
    field.disabled = true; // what is disabled is in no body
    let body = new FormData(form);
    field.disabled = false;
    // It goes as a header; in a body it would make another request of a repeat, for each page masks it anew.
    body.delete("csrfmiddlewaretoken");
    const kind = form.querySelector('[data-override="content-type"]');
    if (kind) {
      headers["Content-Type"] = kind.value;
      body = form.querySelector('[data-override="content"]').value;
    }
    try {
      const answer = await fetch(form.action || location.href, { method, headers, body });
      const text = await answer.text();
      if ((answer.headers.get("Content-Type") || "").startsWith("text/html")) {
        replaceDocument(text); // of ajax-form.js
      } else {
        show(form, `${answer.status} ${answer.statusText}\n${text}`);
      }
    } catch {
      show(form, "No answer came. It may have been done: send it again, with the same key.");
    }
  }

  function show(form, text) {
    let place = form.querySelector("pre.idempotency-answer");
    if (!place) {
      place = document.createElement("pre");
      place.className = "idempotency-answer";
      form.append(place);
    }
    place.textContent = text;
  }
})();
