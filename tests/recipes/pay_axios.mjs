// Pay once, with axios. The key is made with the intent and kept: give it to every try, also after a restart.
//
//     node pay_axios.mjs <address> <file of the key> <body>

import axios from "axios";
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

// An interceptor sees each failed try with the configuration of the first: repeated as it is, it has the same body and
// the same key. Whoever makes the key in a *request* interceptor makes a new one for each try: a second payment.
function repeating(client) {
  client.interceptors.response.use(undefined, async (error) => {
    const { config, response } = error;
    const again =
      !response || // no answer: it may have been done
      response.data?.retryable ||
      [429, 500, 502, 503, 504].includes(response.status);
    if (!config || !again) throw error;
    config.until ??= Date.now() + PATIENCE;
    config.tries = (config.tries ?? 0) + 1;
    const word = Number(response?.headers["retry-after"]) * 1000;
    const pause = word || Math.random() * FIRST_PAUSE * 2 ** config.tries;
    if (Date.now() + pause > config.until) throw error; // still open: later, with the same key
    await new Promise((done) => setTimeout(done, pause));
    return client.request(config);
  });
  return client;
}

const client = repeating(
  axios.create({
    timeout: 15_000,
    maxRedirects: 0,
    headers: {
      "Content-Type": "application/json",
      Authorization: process.env.AUTHORIZATION ?? "",
    },
  }),
);

const [address, file, body] = process.argv.slice(2);
try {
  const headers = { "Idempotency-Key": keyIn(file) };
  const answer = await client.post(address, body, { headers });
  console.log(answer.status, JSON.stringify(answer.data));
} catch (error) {
  if (!error.response) throw error;
  // Refused for good: this, too, is an answer.
  console.log(error.response.status, JSON.stringify(error.response.data));
}
