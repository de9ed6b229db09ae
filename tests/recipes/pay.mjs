// Pay once, with fetch. The key is made with the intent and kept: give it to every try, also after a restart.
//
//     node pay.mjs <address> <file of the key> <body>

import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const PATIENCE = 60_000; // milliseconds for all tries and waits
const FIRST_PAUSE = 200;

function keyIn(file) {
  // Written whole before it has the name: nobody reads half a key, and whoever was first has made it.
  const own = `${file}.${process.pid}`;
  writeFileSync(own, randomUUID(), { flush: true });
  try {
    linkSync(own, file);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    rmSync(own);
  }
  const key = readFileSync(file, "utf8");
  if (!key) throw new Error(`No key in ${file}.`);
  return key;
}

async function once(address, key, body) {
  const until = Date.now() + PATIENCE;
  for (let tries = 0; ; tries += 1) {
    let answer, problem, failure;
    try {
      answer = await fetch(address, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "Idempotency-Key": key,
          Authorization: process.env.AUTHORIZATION ?? "",
        },
        body,
        signal: AbortSignal.timeout(15_000),
      });
      problem = answer.ok ? {} : await answer.clone().json().catch(() => ({}));
    } catch (error) {
      failure = error; // no answer: it may have been done
    }
    const again = failure || problem.retryable || [429, 500, 502, 503, 504].includes(answer.status);
    if (!again) return answer;
    const word = Number(answer?.headers.get("Retry-After")) * 1000;
    const pause = word || Math.random() * FIRST_PAUSE * 2 ** tries;
    if (Date.now() + pause > until) {
      throw failure ?? new Error(`Still open: ${problem.code}. Run it again with the same key.`);
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

const [address, file, body] = process.argv.slice(2);
const answer = await once(address, keyIn(file), body);
console.log(answer.status, await answer.text());
