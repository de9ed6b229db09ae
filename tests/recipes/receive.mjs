// Receive events: verify the signature over the raw body, take each webhook-id in once, answer at once.
//
//     WEBHOOK_SECRET=whsec_… node receive.mjs <port> <folder of the ids>

import { createHmac, timingSafeEqual } from "node:crypto";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const TOLERANCE = 300; // seconds between their clock and ours

export function verify(secret, headers, body) {
  const id = headers["webhook-id"];
  const stamp = headers["webhook-timestamp"];
  // Written so that no number at all is refused too.
  if (!(Math.abs(Date.now() / 1000 - Number(stamp)) <= TOLERANCE)) {
    throw new Error("too old, or from the future: it may be a replay");
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${stamp}.`).update(body).digest();
  // Several while a secret is being replaced; any of them will do.
  const signed = (headers["webhook-signature"] ?? "").split(" ").some((one) => {
    const [version, value] = one.split(",", 2);
    const given = Buffer.from(value ?? "", "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!signed) throw new Error("not signed with our secret");
  return id;
}

// In earnest the id is a row in your database, inserted in the transaction of the event's effect.
function takeIn(folder, id, event) {
  try {
    writeFileSync(join(folder, id), "", { flag: "wx" });
  } catch (error) {
    if (error.code === "EEXIST") return; // had it already
    throw error;
  }
  appendFileSync(join(folder, "effects"), `${event.type}\n`);
}

const [port, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    try {
      const id = verify(process.env.WEBHOOK_SECRET, request.headers, body);
      takeIn(folder, id, JSON.parse(body));
      response.writeHead(204).end();
    } catch {
      response.writeHead(400).end();
    }
  });
}).listen(Number(port), "127.0.0.1");
