// Verifies an exported proof with snarkjs, unchanged, and with the argument "changed" each proof in which one public input
// or one coordinate is another. It reads {"verification_key", "proof", "public"} from stdin, and prints {"holds", "refused", "accepted"}.
import { readFileSync } from "node:fs";
import { groth16 } from "snarkjs";

const { verification_key: key, proof, public: inputs } = JSON.parse(readFileSync(0, "utf8"));
const result = { holds: await groth16.verify(key, inputs, proof), refused: 0, accepted: [] };
const refuse = async (name, k, i, p) => {
  let accepted = false;
  try {
    accepted = await groth16.verify(k, i, p);
  } catch {
    // a point that is not on the curve
  }
  if (accepted) result.accepted.push(name);
  else result.refused++;
};
const more = (text) => (BigInt(text) + 1n).toString();
if (process.argv[2] === "changed") {
  for (let i = 0; i < inputs.length; i++) {
    await refuse(`input ${i}`, key, inputs.with(i, more(inputs[i])), proof);
  }
  await refuse("fewer inputs", key, inputs.slice(1), proof);
  await refuse("another order", key, inputs.toReversed(), proof);
  for (const point of ["pi_a", "pi_c"]) {
    await refuse(point, key, inputs, { ...proof, [point]: proof[point].with(0, more(proof[point][0])) });
  }
  await refuse("pi_a and pi_c", key, inputs, { ...proof, pi_a: proof.pi_c, pi_c: proof.pi_a });
  await refuse("the commitment", { ...key, IC: key.IC.with(0, key.IC[1]) }, inputs, proof);
}
console.log(JSON.stringify(result));
process.exit(0); // snarkjs keeps threads
