// Verifies quotes of TDX and SGX with dcap-qvl, unchanged, by a root of the caller. It reads [{"name", "quote", "data",
// "collateral"}] with "root" and "now" from stdin, and prints {name: reason}; "": the quote is accepted. What the library leaves to its
// caller is checked here: that the status is the best one, and that the quote has the report data.
import { readFileSync } from "node:fs";
import { QuoteVerifier } from "@phala/dcap-qvl";

const { root, now, vectors } = JSON.parse(readFileSync(0, "utf8"));
const verifier = QuoteVerifier.newWithRootCa(Buffer.from(root, "hex"));
const verdicts = {};
for (const { name, quote, data, collateral } of vectors) {
  const raw = Buffer.from(quote, "hex");
  try {
    const report = verifier.verify(raw, collateral, now);
    // the last field of the body, which the header of 48 bytes comes before
    const end = 48 + (raw.readUInt16LE(0) === 3 ? 384 : 584);
    if (report.status !== "UpToDate") verdicts[name] = `the status is ${report.status}`;
    else if (raw.subarray(end - 64, end).toString("hex") !== data) verdicts[name] = "other report data";
    else verdicts[name] = "";
  } catch (e) {
    verdicts[name] = `${e.message ?? e}` || "an error without a text";
  }
}
console.log(JSON.stringify(verdicts));
