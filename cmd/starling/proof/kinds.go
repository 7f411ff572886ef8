package proof

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/proven"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/verifier"
)

// said is a proof about an answer for programs.
type said struct {
	Verified
	File       string  `json:"file"`
	Label      string  `json:"label"`        // of the integers
	Engine     string  `json:"engine_label"` // of the engine, in float32
	Difference float64 `json:"difference"`   // largest of a probability
	Seconds    float64 `json:"seconds"`
}

func inferCommand(c *terminal.Console) *cobra.Command {
	var keys, to, secret, owner string
	var threads int
	cmd := &cobra.Command{
		Use:   "infer MODEL IMAGE --keys SETUP --to FILE",
		Short: "Prove what a network says about an image",
		Long: `Prove the scores that a network of dense layers gives to an image, without showing its weights. MODEL is the
folder of an mlp which classifies images; IMAGE a PNG file of its size. --keys is the folder of a setup for its widths.
The image and the scores are in the proof.

The scores are those of integers: weights are rounded once, and hidden values between layers, as docs/proofs.md says.
The command compares the class and the probabilities with those of the engine in float32.

--owner is the account that will publish the proof: no other can. --secret is the file of the random number that hides
the weights; it is made if it is not there. Proofs with one secret have one commitment: they are about one network.

With -o json: {"file","label","engine_label","difference","seconds",` + otherFields + `}.`,
		Example: `  starling model proof setup start setup --widths 784,128,10 --alone
  starling model proof infer out/digits seven.png --keys setup --to seven.proof`,
		Args: usage.Exactly("MODEL", "IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keys == "" || to == "" {
				return usage.Error(cmd, errors.New("--keys and --to are needed"))
			}
			if secret == "" {
				secret = filepath.Clean(args[0]) + ".secret"
			}
			n, err := proven.OpenNetwork(args[0])
			if err != nil {
				return explain(err)
			}
			image, err := n.ReadImage(args[1])
			if err != nil {
				return explain(err)
			}
			v, pk, err := ceremony.InferenceKeys(keys)
			if err != nil {
				return explain(err)
			}
			hidden, err := proven.ReadSecret(secret, true)
			if err != nil {
				return explain(err)
			}
			began := time.Now()
			made, err := n.Infer(cmd.Context(), image, owner, v, pk, hidden)
			if err != nil {
				return explain(err)
			}
			seconds := time.Since(began).Seconds()
			answer, err := n.Said(cmd.Context(), made.Statement, image, threads)
			if err != nil {
				return explain(err)
			}
			if err := os.WriteFile(to, made.Encode(), 0o644); err != nil {
				return explain(err)
			}
			k, err := verifier.ReadKey(v.Key().Encode())
			if err != nil {
				return explain(err)
			}
			shown := said{verified(verifier.Proof{Inference: &made}, k), to, answer.Label, answer.Engine, answer.Difference,
				seconds}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(shown, shown.Proof))
			}
			_, err = fmt.Printf("%s: the network says %s, and the engine %s; probabilities differ by %.2g; the secret is in "+
				"%s\n", to, terminal.Printable(shown.Label), terminal.Printable(shown.Engine), shown.Difference, secret)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&keys, "keys", "", "folder of a setup whose phases are sealed")
	f.StringVar(&to, "to", "", "file of the proof")
	f.StringVar(&secret, "secret", "", "file of the secret (default: MODEL.secret)")
	f.StringVar(&owner, "owner", "", "account that publishes the proof")
	usage.ThreadsFlag(cmd, &threads)
	return cmd
}

func commitCommand(c *terminal.Console) *cobra.Command {
	var keys, to string
	var place int
	var clip, weight float64
	cmd := &cobra.Command{
		Use:   "commit UPDATE --place N --clip NORM --keys SETUP --to FILE",
		Short: "Commit to an update that will be part of a sum",
		Long: `Put an update on the grid of sums, and commit to it with a new random number. UPDATE is a safetensors file of
float32 tensors: differences of weights. It is clipped to the norm --clip, weighed with --weight, and rounded to steps
of 2^-22 of the norm, as updates of federated jobs are; the last element of a sum is the sum of the weights.

Publish the commitment before the sum is made, and give the file --to to the party that adds, and to no other: it has
the update. --place is the place of the update among those of the sum, from 1; no two owners have one.

With -o json: {"file","place","commitment","elements"}.`,
		Example: `  starling model proof commit mine.safetensors --place 2 --clip 0.5 --keys setup --to mine.update`,
		Args:    usage.Exactly("UPDATE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case keys == "" || to == "" || !(clip > 0):
				return usage.Error(cmd, errors.New("--keys, --to, and --clip of more than 0 are needed"))
			case place < 1 || place > aggregation.MaxUpdates:
				return usage.Error(cmd, fmt.Errorf("--place must be 1 to %d", aggregation.MaxUpdates))
			case !(weight > 0 && weight <= 1):
				return usage.Error(cmd, errors.New("--weight must be more than 0, and at most 1"))
			}
			u, err := proven.EncodeUpdate(args[0], clip, weight)
			if err != nil {
				return explain(err)
			}
			v, pk, err := ceremony.AggregationKeys(keys)
			if err != nil {
				return explain(err)
			}
			u.Place, u.Key = place-1, v.Digest()
			if _, err := rand.Read(u.Secret[:]); err != nil {
				return err
			}
			commitment, err := u.Commit(v, pk)
			if err != nil {
				return explain(err)
			}
			if err := os.WriteFile(to, u.Encode(), 0o600); err != nil {
				return explain(err)
			}
			text := fmt.Sprintf("%x", commitment)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]any{"file": to, "place": place, "commitment": text,
					"elements": len(u.Values)}, text))
			}
			_, err = fmt.Printf("commitment %s to %d elements; %s has the update and its secret\n", text, len(u.Values), to)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&keys, "keys", "", "folder of a setup whose phases are sealed")
	f.StringVar(&to, "to", "", "file for the update with its secret")
	f.IntVar(&place, "place", 0, "place of the update in the sum, from 1")
	f.Float64Var(&clip, "clip", 0, "norm to which the update is clipped: one for all updates of a sum")
	f.Float64Var(&weight, "weight", 1, "weight of the update in the mean, at most 1")
	return cmd
}

func sumCommand(c *terminal.Console) *cobra.Command {
	var keys, to, model, part, owner, mean string
	cmd := &cobra.Command{
		Use:   "sum FILE... --model MODEL --part NAME --keys SETUP --to FILE",
		Short: "Add committed updates, and prove the sum",
		Long: `Add the updates of files that commit wrote, one for each place of the setup, and prove that the sums are those
of the updates under the commitments of their owners, without showing the updates. The sums are in the proof. Each owner
compares the commitment at its place with its own: starling model proof check --committed.

--model is the folder of the model that the sum changed, which the proof names; --part says which round or tensors the
sum is of. --mean writes the weighted mean as safetensors: anyone computes it from the sums. --owner is the account that
will publish the proof: no other can.

With -o json: {"file","seconds",` + otherFields + `}.`,
		Example: `  starling model proof sum a.update b.update --model out/base --part "round 3" --keys setup --to sum.proof`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage.Error(cmd, errors.New("give the files of two updates or more"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if keys == "" || to == "" || model == "" || part == "" {
				return usage.Error(cmd, errors.New("--keys, --to, --model and --part are needed"))
			}
			var updates []proven.Update
			for _, name := range args {
				u, err := proven.ReadUpdate(name)
				if err != nil {
					return explain(err)
				}
				updates = append(updates, u)
			}
			v, pk, err := ceremony.AggregationKeys(keys)
			if err != nil {
				return explain(err)
			}
			began := time.Now()
			made, err := proven.Sum(cmd.Context(), updates, model, part, owner, v, pk)
			if err != nil {
				return explain(err)
			}
			seconds := time.Since(began).Seconds()
			if mean != "" {
				if err := folder.WriteFileBy(mean, func(w io.Writer) error {
					return proven.WriteMean(w, made.Statement, updates[0])
				}); err != nil {
					return explain(err)
				}
			}
			if err := os.WriteFile(to, made.Encode(), 0o644); err != nil {
				return explain(err)
			}
			k, err := verifier.ReadKey(v.Key().Encode())
			if err != nil {
				return explain(err)
			}
			shown := verified(verifier.Proof{Aggregation: &made}, k)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(struct {
					Verified
					File    string  `json:"file"`
					Seconds float64 `json:"seconds"`
				}{shown, to, seconds}, shown.Proof))
			}
			_, err = fmt.Printf("%s: a proof of %d bytes for %s\n", to, shown.Bytes, shown.Subject)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&keys, "keys", "", "folder of a setup whose phases are sealed")
	f.StringVar(&to, "to", "", "file of the proof")
	f.StringVar(&model, "model", "", "folder of the model that the sum changed")
	f.StringVar(&part, "part", "", "round or tensors of the sum")
	f.StringVar(&mean, "mean", "", "file for the weighted mean, as safetensors")
	f.StringVar(&owner, "owner", "", "account that publishes the proof")
	return cmd
}
